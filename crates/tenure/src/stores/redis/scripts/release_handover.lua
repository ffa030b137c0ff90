-- The rest of the usual release: lets in the first waiter, if it wants the lock for itself and can be reached.

hand_over = function(lock)
  local queue, alive, waiters = beside(lock, 'queue'), beside(lock, 'alive'), beside(lock, 'waiters')
  local owner = call('ZRANGE', queue, 0, 0)[1]
  if (tonumber(call('ZSCORE', alive, owner) or 0)) <= now then return false end
  local waiter = read_waiter(call('HGET', waiters, owner) or '')
  if not waiter or waiter.mode ~= 'x' or not reachable(waiter.channel) then return false end
  local lasts, fence = claim_window(waiter), beside(lock, 'fence')
  local last = call('GET', fence)
  if lasts > DAY * 1000 or (tonumber(last or 0) or 0) >= now then return false end
  local expiry = digits(now + lasts)
  -- First what makes room: Redis lets a script that has begun to write go on without memory.
  call('ZREM', queue, owner)
  call('ZREM', alive, owner)
  call('HDEL', waiters, owner)
  call('SET', fence, digits(now + FURTHER), 'PX', TWO_DAYS)
  call('SET', lock, 'v1 ' .. owner .. ' ' .. NOW .. ' ' .. NOW .. ' ' .. expiry .. ' '
    .. waiter.ttl .. ' ' .. waiter.party, 'PX', px(now + lasts))
  push(lock, waiter.channel, owner, NOW, expiry)
  return true
end

if not recovering then pcall(quickly) end
if a == #ARGV then return replies end
