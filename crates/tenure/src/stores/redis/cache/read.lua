-- Look up a cached value.
--
-- KEYS   value (a hash: v the value, f the fence it was written with, k for how many ms it was to be kept)
-- says   nil                            nothing is there
--        {value, kept ms, left ms}      how old it is: kept - left

local value = redis.call('HMGET', KEYS[1], 'v', 'k')
if not value[1] or not value[2] then
  return nil
end
return {value[1], tonumber(value[2]), redis.call('PTTL', KEYS[1])}
