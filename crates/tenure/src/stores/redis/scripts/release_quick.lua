-- The usual release. KEYS, ARGV and what it says: see release.lua.

-- Lets in the first waiter, if it wants the lock for itself and can be reached; false if it is not
-- as simple as that, and nothing has been done.
local function hand_over(lock, owner)
  local alive, waiters = beside(lock, 'alive'), beside(lock, 'waiters')
  if (tonumber(redis.call('ZSCORE', alive, owner) or 0)) <= now then return false end
  local waiter = read_waiter(redis.call('HGET', waiters, owner) or '')
  if not waiter or waiter.mode ~= 'x' or not reachable(waiter.channel) then return false end
  local lasts, fence = claim_window(waiter), beside(lock, 'fence')
  local last = redis.call('GET', fence)
  if lasts > DAY * 1000 or (tonumber(last or 0) or 0) >= now then return false end
  local expiry = digits(now + lasts)
  -- First what makes room: Redis lets a script that has begun to write go on without memory.
  redis.call('ZREM', beside(lock, 'queue'), owner)
  redis.call('ZREM', alive, owner)
  redis.call('HDEL', waiters, owner)
  redis.call('SET', fence, digits(now + FURTHER), 'PX', TWO_DAYS)
  redis.call('SET', lock, 'v1 ' .. owner .. ' ' .. NOW .. ' ' .. NOW .. ' ' .. expiry .. ' '
    .. waiter.ttl .. ' ' .. waiter.party, 'PX', px(now + lasts))
  push(lock, waiter.channel, owner, NOW, expiry)
  return true
end

-- An exclusive hold of ours, and nobody waits, or first somebody who wants it exclusively.
local function quick(lock, a)
  local value = redis.pcall('GET', lock)
  local head = 'v1 ' .. owner_of(a) .. ' ' .. ARGV[a + 2] .. ' '
  if type(value) ~= 'string' or string.sub(value, 1, #head) ~= head then return nil end
  local expiry = string.match(value, '^%d+ (%d+) ', #head + 1)
  if not expiry or tonumber(expiry) <= now then return nil end
  local next_owner = redis.call('ZRANGE', beside(lock, 'queue'), 0, 0)[1]
  if not next_owner then
    redis.call('DEL', lock)
  elseif not hand_over(lock, next_owner) then
    return nil
  end
  return 'released'
end

local replies, first = quickly(2, quick)
if not first then return replies end
