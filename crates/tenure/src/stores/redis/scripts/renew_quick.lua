-- The usual renewal. KEYS, ARGV and what it says: see renew.lua.

local function prolonged(old, a)
  local moment = now + tonumber(ARGV[a + 3]) * 1000
  return string.sub(ARGV[a + 4], 1, 1) == '1' and moment or math.max(old, moment)
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

local replies, first = quickly(4, quick)
if not first then return replies end
