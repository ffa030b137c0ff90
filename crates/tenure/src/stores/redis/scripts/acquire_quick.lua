-- The usual acquire. KEYS, ARGV and what it says: see acquire.lua.

local LAST = digits(now + FURTHER)

-- Gives NOW as the next fence, and those up to LAST with it, in one command. False if a fence as high was
-- given or set aside before, some microseconds ago or because the clock was set back: then the careful
-- way must grant, which also sets how long that fence is remembered.
local function next_fence(lock)
  local key = beside(lock, 'fence')
  local last = redis.call('SET', key, LAST, 'PX', TWO_DAYS, 'GET')
  if not last or (tonumber(last) or 0) < now then return true end
  redis.call('SET', key, last, 'PX', TWO_DAYS)
  return false
end

-- Free, exclusive, for less than a day, and nobody waits: three commands.
local function quick(lock, a)
  local limit, millis = ARGV[a + 4], tonumber(ARGV[a + 3]) - 1
  if string.sub(ARGV[a + 5], 1, 2) ~= 'x ' or millis > DAY then return nil end
  if limit ~= '' and tonumber(limit) < now then return nil end
  if redis.call('EXISTS', lock, beside(lock, 'queue')) > 0 or not next_fence(lock) then return nil end
  local expiry = digits(now + millis * 1000)
  redis.call('SET', lock, 'v1 ' .. owner_of(a) .. ' ' .. NOW .. ' ' .. NOW .. ' ' .. expiry .. ' '
    .. ARGV[a + 2], 'PX', ARGV[a + 3])
  return 'granted ' .. NOW .. ' ' .. expiry
end

local replies, first = quickly(5, quick)
if not first then return replies end
