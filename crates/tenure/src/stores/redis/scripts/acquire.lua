-- Take a lock, or wait for it. Mirrors decide/acquire.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>", 2 "<ttl> <pid> <host> <who> <label>", 3 ttl + 1 (for PX), 4 not_after ("" = none),
--        5 "<mode> <alive_for> <cursor> <channel>": the channel to push the grant to ("-" = do not
--        wait), and "-inf" for the cursor unless going on
-- says   granted <fence> <expiry>
--        queued <ahead> <contention>
--        busy <contention>
--        late
--        conflict lock | conflict <capacity>

-- Gives NOW as the next fence, in one command. False if a fence as high was given before, twice within
-- a microsecond or because the clock was set back: then the careful way must grant, which also sets
-- how long that fence is remembered.
local function next_fence(lock)
  local key = beside(lock, 'fence')
  local last = redis.call('SET', key, NOW, 'PX', TWO_DAYS, 'GET')
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

-- What is asked for, unpacked.
local function read_wish(a)
  local wish = {owner = owner_of(a)}
  wish.ttl, wish.party = string.match(ARGV[a + 2], '^(%d+) (.+)$')
  wish.mode, wish.alive_for, wish.cursor, wish.channel =
    string.match(ARGV[a + 5], '^(%S+) (%d+) (%S+) (%S+)$')
  wish.waits = wish.channel ~= '-'
  return wish
end

-- Takes or keeps the place in the queue (acquire.rs, join).
local function join(state, wish)
  local owner, alive_for = wish.owner, tonumber(wish.alive_for)
  local known = redis.call('ZSCORE', state.alive, owner)
  if not known then
    local last = redis.call('ZREVRANGE', state.queue, 0, 0, 'WITHSCORES')[2]
    local ticket = math.max(tonumber(last or 0) + 1, now)
    local text = wish.mode .. ' ' .. wish.ttl .. ' ' .. NOW .. ' ' .. wish.alive_for .. ' '
      .. wish.channel .. ' ' .. wish.party
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

local function careful(tools, lock, a)
  local state, wish, limit = tools.load(lock), read_wish(a), ARGV[a + 4]
  local owner, mode = wish.owner, wish.mode
  local function done(said)
    tools.save(state)
    return said, state.more
  end
  local function take()
    local lasts = tonumber(wish.ttl) * 1000
    return done(granted(tools.grant(state, owner, mode, lasts, wish.ttl, wish.party)))
  end

  local mine = tools.holder(state, owner)
  if mine then
    tools.admit(state, nil, wish.cursor)
    return done(granted(mine))
  end
  if limit ~= '' and tonumber(limit) < now then
    tools.admit(state, nil, wish.cursor)
    return done('late')
  end
  local kind = tools.kind(state)
  if kind and kind ~= tools.kind_of(mode) then
    tools.admit(state, nil, wish.cursor)
    return done('conflict ' .. kind)
  end
  -- Joining an empty queue only to be let in at once comes to the same as this.
  if state.waiting == 0 and tools.fits(state, mode) then return take() end

  if wish.waits then join(state, wish) elseif state.waiting > 0 then tools.forget(state, {owner}) end
  local awaited = tools.admit(state, owner, wish.cursor)
  mine = tools.holder(state, owner)
  if mine then return done(granted(mine)) end
  if wish.waits then
    local ahead = redis.call('ZRANK', state.queue, owner) or 0
    return done('queued ' .. ahead .. ' ' .. tools.contention(state))
  end
  if not awaited and tools.fits(state, mode) then return take() end
  return done('busy ' .. tools.contention(state))
end

return run(5, quick, careful)
