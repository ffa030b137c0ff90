-- End a hold and let in the next. Mirrors decide/release.rs, release.
--
-- KEYS   lock, fence, queue, alive, waiters, forced (see prelude.lua)
-- ARGV   1 nonce, 2 owner, 3 fence
-- says   released
--        nothing | forced <at> <pid> <host> <who> <label> <reason>

-- An exclusive hold of ours and nobody waits: three commands.
local function quick(k, a)
  local value = redis.pcall('GET', KEYS[k + 1])
  local head = 'v1 ' .. ARGV[a + 2] .. ' ' .. ARGV[a + 3] .. ' '
  if type(value) ~= 'string' or string.sub(value, 1, #head) ~= head then return nil end
  local expiry = string.match(value, '^%d+ (%d+) ', #head + 1)
  if not expiry or tonumber(expiry) <= now then return nil end
  if redis.call('EXISTS', KEYS[k + 3]) > 0 then return nil end
  redis.call('DEL', KEYS[k + 1])
  return 'released'
end

local function careful(tools, k, a)
  local state = tools.load(k)
  local holder, index = tools.holder(state, ARGV[a + 2], ARGV[a + 3])
  local said = 'released'
  if holder then
    tools.remove(state, index)
  else
    said = tools.not_held(state, ARGV[a + 2], ARGV[a + 3])
  end
  tools.admit(state)
  tools.save(state)
  return said, state.more
end

return run(3, quick, careful)
