-- The usual vote. KEYS, ARGV and what it says: see vote.lua.

-- Gives the proposal as the next fence, and sets those aside that go with it, in one command. False if one as high was given before, or if it
-- is far ahead of this clock: then the careful way must vote, which also sets how long it is remembered.
local function next_fence(lock, proposal)
  if tonumber(proposal) >= now + DAY * 1000 then return false end
  local key = beside(lock, 'fence')
  local last = redis.call('SET', key, digits(tonumber(proposal) + FURTHER), 'PX', TWO_DAYS, 'GET')
  if not last or (tonumber(last) or 0) < tonumber(proposal) then return true end
  redis.call('SET', key, last, 'PX', TWO_DAYS)
  return false
end

-- A new vote where it is free, exclusive, for less than a day, and nobody waits: three commands.
local function quick(lock, a)
  local proposal = string.match(ARGV[a + 5], '^x new (%d+)$')
  local limit, millis = ARGV[a + 4], tonumber(ARGV[a + 3]) - 1
  if not proposal or proposal == '0' or millis > DAY then return nil end
  if limit ~= '' and tonumber(limit) < now then return nil end
  if redis.call('EXISTS', lock, beside(lock, 'queue')) > 0 then return nil end
  if not next_fence(lock, proposal) then return nil end
  local expiry = digits(now + millis * 1000)
  redis.call('SET', lock, 'v1 ' .. owner_of(a) .. ' ' .. proposal .. ' ' .. NOW .. ' ' .. expiry .. ' '
    .. ARGV[a + 2], 'PX', ARGV[a + 3])
  return 'granted ' .. proposal .. ' ' .. expiry
end

local replies, first = quickly(5, quick)
if not first then return replies end
