-- Keep a value, unless a later one is there.
--
-- KEYS   value (see read.lua)
-- ARGV   1 the value, 2 the fence of whoever loaded it, 3 for how many ms to keep it
-- says   1   it is kept
--        0   one with a higher fence is there and stays

local fence = redis.call('HGET', KEYS[1], 'f')
if fence and tonumber(fence) > tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'v', ARGV[1], 'f', ARGV[2], 'k', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
