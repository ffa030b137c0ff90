-- End somebody else's hold, and remember for an hour who did and why. Mirrors decide/release.rs, force_release.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>", 2 fence, 3 party of whoever does it, 4 reason
-- says   released
--        nothing | forced <at> <pid> <host> <who> <label> <reason>

local function careful(tools, lock, a)
  local state, owner, fence = tools.load(lock), owner_of(a), ARGV[a + 2]
  local holder, index = tools.holder(state, owner, fence)
  local said = 'released'
  if holder then
    local text = owner .. ' ' .. fence .. ' ' .. NOW .. ' ' .. ARGV[a + 3] .. ' ' .. ARGV[a + 4]
    redis.call('SET', state.forced, text, 'PX', HOUR)
    tools.remove(state, index)
  else
    said = tools.not_held(state, owner, fence)
  end
  tools.admit(state)
  tools.save(state)
  return said, state.more
end

return run(4, nil, careful)
