-- Names and numbers as texts, for everything but the quick way. Keys, arguments and replies: see prelude.lua.

local function digits(number)
  return format('%d', number)
end

-- Milliseconds from now to `moment`, rounded up: a key never goes before the hold it stands for.
-- One more, because Redis counts from the whole millisecond in which the script began.
local function px(moment)
  return digits(math.ceil((moment - now) / 1000) + 1)
end

-- One of the keys beside a lock.
local function beside(lock, what)
  return '~tenure:{' .. lock .. '}:' .. what
end

-- Who asks.
local function asker()
  return sub(ARGV[a + 1], -32)
end
