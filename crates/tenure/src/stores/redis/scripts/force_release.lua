-- End somebody else's hold, and remember for an hour who did and why. Mirrors decide/release.rs, force_release.
--
-- KEYS   lock, fence, queue, alive, waiters, forced (see prelude.lua)
-- ARGV   1 nonce, 2 owner, 3 fence, 4 party of whoever does it, 5 reason
-- says   released
--        nothing | forced <at> <pid> <host> <who> <label> <reason>

local function careful(tools, k, a)
  local state = tools.load(k)
  local holder, index = tools.holder(state, ARGV[a + 2], ARGV[a + 3])
  local said = 'released'
  if holder then
    local text = ARGV[a + 2] .. ' ' .. ARGV[a + 3] .. ' ' .. NOW .. ' ' .. ARGV[a + 4] .. ' ' .. ARGV[a + 5]
    redis.call('SET', state.forced, text, 'PX', HOUR)
    tools.remove(state, index)
  else
    said = tools.not_held(state, ARGV[a + 2], ARGV[a + 3])
  end
  tools.admit(state)
  tools.save(state)
  return said, state.more
end

return run(5, nil, careful)
