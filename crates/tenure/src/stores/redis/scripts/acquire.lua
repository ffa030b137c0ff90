-- Take a lock, or wait for it. Mirrors decide/acquire.rs.
--
-- KEYS   lock, fence, queue, alive, waiters, forced (see prelude.lua)
-- ARGV   1 nonce, 2 owner, 3 mode, 4 ttl, 5 channel to push the grant to ("" = do not wait),
--        6 alive_for, 7 not_after ("" = none), 8 party, 9 cursor ("-inf" unless going on),
--        10 ttl + 1, for PX (a text, because making one from a number is slow)
-- says   granted <fence> <expiry>
--        queued <ahead> <contention>
--        busy <contention>
--        late
--        conflict lock | conflict <capacity>

-- Free, exclusive, for less than a day, and nobody waits: five commands.
local function quick(k, a)
  local lock, fence_key, ttl = KEYS[k + 1], KEYS[k + 2], ARGV[a + 4]
  if ARGV[a + 3] ~= 'x' or redis.call('EXISTS', lock, KEYS[k + 3]) > 0 then return nil end
  local limit, millis = ARGV[a + 7], tonumber(ttl)
  if millis > DAY or (limit ~= '' and tonumber(limit) < now) then return nil end
  local last = tonumber(redis.call('GET', fence_key) or 0) or 0
  -- A clock that was set back: the careful way remembers the fence for longer.
  if last >= now + DAY * 1000 then return nil end
  local fence = last < now and NOW or digits(last + 1)
  local expiry = digits(now + millis * 1000)
  redis.call('SET', fence_key, fence, 'PX', TWO_DAYS)
  redis.call('SET', lock, 'v1 ' .. ARGV[a + 2] .. ' ' .. fence .. ' ' .. NOW .. ' ' .. expiry .. ' '
    .. ttl .. ' ' .. ARGV[a + 8], 'PX', ARGV[a + 10])
  return 'granted ' .. fence .. ' ' .. expiry
end

-- Takes or keeps the place in the queue (acquire.rs, join).
local function join(state, a)
  local owner, alive_for = ARGV[a + 2], tonumber(ARGV[a + 6])
  local known = redis.call('ZSCORE', state.alive, owner)
  if not known then
    local last = redis.call('ZREVRANGE', state.queue, 0, 0, 'WITHSCORES')[2]
    local ticket = math.max(tonumber(last or 0) + 1, now)
    local text = ARGV[a + 3] .. ' ' .. ARGV[a + 4] .. ' ' .. NOW .. ' ' .. ARGV[a + 6] .. ' '
      .. ARGV[a + 5] .. ' ' .. ARGV[a + 8]
    redis.call('HSET', state.waiters, owner, text)
    state.waiting = state.waiting + redis.call('ZADD', state.queue, digits(ticket), owner)
  end
  if not known or tonumber(known) < now + alive_for then
    redis.call('ZADD', state.alive, digits(now + alive_for), owner)
  end
  -- Garbage collection: the three come and go together, this long after the last sign of life.
  local rest = math.ceil(alive_for / 1000) + 1000
  if redis.call('PTTL', state.alive) < rest then
    redis.call('PEXPIRE', state.queue, digits(rest))
    redis.call('PEXPIRE', state.alive, digits(rest))
    redis.call('PEXPIRE', state.waiters, digits(rest))
  end
end

local function granted(holder)
  return 'granted ' .. digits(holder.fence) .. ' ' .. digits(holder.expiry)
end

local function careful(tools, k, a)
  local state = tools.load(k)
  local owner, mode, ttl, limit = ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 7]
  local function done(said)
    tools.save(state)
    return said, state.more
  end
  local function take()
    return done(granted(tools.grant(state, owner, mode, tonumber(ttl) * 1000, ttl, ARGV[a + 8])))
  end

  local mine = tools.holder(state, owner)
  if mine then
    tools.admit(state, nil, ARGV[a + 9])
    return done(granted(mine))
  end
  if limit ~= '' and tonumber(limit) < now then
    tools.admit(state, nil, ARGV[a + 9])
    return done('late')
  end
  local kind = tools.kind(state)
  if kind and kind ~= tools.kind_of(mode) then
    tools.admit(state, nil, ARGV[a + 9])
    return done('conflict ' .. kind)
  end
  -- Joining an empty queue only to be let in at once comes to the same as this.
  if state.waiting == 0 and tools.fits(state, mode) then return take() end

  local waits = ARGV[a + 5] ~= ''
  if waits then join(state, a) elseif state.waiting > 0 then tools.forget(state, {owner}) end
  local awaited = tools.admit(state, owner, ARGV[a + 9])
  mine = tools.holder(state, owner)
  if mine then return done(granted(mine)) end
  if waits then
    local ahead = redis.call('ZRANK', state.queue, owner) or 0
    return done('queued ' .. ahead .. ' ' .. tools.contention(state))
  end
  if not awaited and tools.fits(state, mode) then return take() end
  return done('busy ' .. tools.contention(state))
end

return run(10, quick, careful)
