-- Prolong a hold; never shorten it, unless its holder leaves it behind. Mirrors decide/renew.rs.
--
-- KEYS   lock, fence, queue, alive, waiters, forced (see prelude.lua)
-- ARGV   1 nonce, 2 owner, 3 fence, 4 ttl, 5 "1" if the holder leaves it behind, else "0"
-- says   renewed <expiry>
--        nothing | forced <at> <pid> <host> <who> <label> <reason>

local function prolonged(old, a)
  local moment = now + tonumber(ARGV[a + 4]) * 1000
  return ARGV[a + 5] == '1' and moment or math.max(old, moment)
end

-- An exclusive hold of ours: two commands. Nobody can be let in beside it, so the queue can wait.
local function quick(k, a)
  local value = redis.pcall('GET', KEYS[k + 1])
  local head = 'v1 ' .. ARGV[a + 2] .. ' ' .. ARGV[a + 3] .. ' '
  if type(value) ~= 'string' or string.sub(value, 1, #head) ~= head then return nil end
  local since, old, party = string.match(value, '^(%d+) (%d+) %d+ (%d+ %S+ %S+ %S+)$', #head + 1)
  if not since or tonumber(old) <= now then return nil end
  local moment = prolonged(tonumber(old), a)
  local expiry = digits(moment)
  redis.call('SET', KEYS[k + 1], head .. since .. ' ' .. expiry .. ' ' .. ARGV[a + 4] .. ' ' .. party,
    'PX', px(moment))
  return 'renewed ' .. expiry
end

local function careful(tools, k, a)
  local state = tools.load(k)
  local holder, said = tools.holder(state, ARGV[a + 2], ARGV[a + 3]), nil
  if holder then
    holder.expiry = prolonged(holder.expiry, a)
    holder.ttl, holder.touched, state.changed = ARGV[a + 4], true, true
    said = 'renewed ' .. digits(holder.expiry)
  else
    said = tools.not_held(state, ARGV[a + 2], ARGV[a + 3])
  end
  tools.admit(state)
  tools.save(state)
  return said, state.more
end

return run(5, quick, careful)
