-- Prolong a hold; never shorten it, unless its holder leaves it behind. Mirrors decide/renew.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>", 2 fence, 3 ttl, 4 "1" if the holder leaves it behind, else "0"
-- says   renewed <expiry>
--        nothing | forced <at> <pid> <host> <who> <label> <reason>

local function prolonged(old, a)
  local moment = now + tonumber(ARGV[a + 3]) * 1000
  return ARGV[a + 4] == '1' and moment or math.max(old, moment)
end

-- An exclusive hold of ours: two commands. Nobody can be let in beside it, so the queue can wait.
local function quick(lock, a)
  local value = redis.pcall('GET', lock)
  local head = 'v1 ' .. owner_of(a) .. ' ' .. ARGV[a + 2] .. ' '
  if type(value) ~= 'string' or string.sub(value, 1, #head) ~= head then return nil end
  local since, old, party = string.match(value, '^(%d+) (%d+) %d+ (%d+ %S+ %S+ %S+)$', #head + 1)
  if not since or tonumber(old) <= now then return nil end
  local moment = prolonged(tonumber(old), a)
  local expiry = digits(moment)
  redis.call('SET', lock, head .. since .. ' ' .. expiry .. ' ' .. ARGV[a + 3] .. ' ' .. party,
    'PX', px(moment))
  return 'renewed ' .. expiry
end

local function careful(tools, lock, a)
  local state, owner, fence = tools.load(lock), owner_of(a), ARGV[a + 2]
  local holder, said = tools.holder(state, owner, fence), nil
  if holder then
    holder.expiry = prolonged(holder.expiry, a)
    holder.ttl, holder.touched, state.changed = ARGV[a + 3], true, true
    said = 'renewed ' .. digits(holder.expiry)
  else
    said = tools.not_held(state, owner, fence)
  end
  tools.admit(state)
  tools.save(state)
  return said, state.more
end

return run(4, quick, careful)
