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

-- What is asked for, unpacked.
local function read_wish()
  local wish = {owner = asker()}
  wish.ttl, wish.party = match(ARGV[a + 2], '^(%d+) (.+)$')
  wish.mode, wish.alive_for, wish.cursor, wish.channel =
    match(ARGV[a + 5], '^(%S+) (%d+) (%S+) (%S+)$')
  wish.waits = wish.channel ~= '-'
  return wish
end

-- Takes or keeps the place in the queue (acquire.rs, join).
local function join(state, wish)
  local owner, alive_for = wish.owner, tonumber(wish.alive_for)
  local known = call('ZSCORE', state.alive, owner)
  if not known then
    local last = call('ZREVRANGE', state.queue, 0, 0, 'WITHSCORES')[2]
    local ticket = math.max(tonumber(last or 0) + 1, now)
    local text = wish.mode .. ' ' .. wish.ttl .. ' ' .. NOW .. ' ' .. wish.alive_for .. ' '
      .. wish.channel .. ' ' .. wish.party
    call('HSET', state.waiters, owner, text)
    state.waiting = state.waiting + call('ZADD', state.queue, digits(ticket), owner)
  end
  if not known or tonumber(known) < now + alive_for then
    call('ZADD', state.alive, digits(now + alive_for), owner)
  end
  -- Garbage collection: the three come and go together, this long after the last sign of life.
  local rest = math.ceil(alive_for / 1000) + 1000
  if call('PTTL', state.alive) < rest then
    call('PEXPIRE', state.queue, digits(rest))
    call('PEXPIRE', state.alive, digits(rest))
    call('PEXPIRE', state.waiters, digits(rest))
  end
end

local function granted(holder)
  return 'granted ' .. digits(holder.fence) .. ' ' .. digits(holder.expiry)
end

local function careful(lock)
  local state, wish, limit = load_state(lock), read_wish(), ARGV[a + 4]
  local owner, mode = wish.owner, wish.mode
  local function done(said)
    save(state)
    return said, state.more
  end
  local function take()
    local lasts = tonumber(wish.ttl) * 1000
    return done(granted(grant(state, owner, mode, lasts, wish.ttl, wish.party)))
  end

  -- What is stored is from before, and may have ended since (acquire.rs, inherited).
  local function inherited()
    local said = wish.waits and 'queued ' .. state.waiting .. ' ' or 'busy '
    return done(said .. contention(state))
  end

  local mine, place = holder_of(state, owner)
  local before = mine and tonumber(mine.since) < opened
  if mine and recovering then return inherited() end
  if mine and not before then
    admit(state, nil, wish.cursor)
    return done(granted(mine))
  end
  if limit ~= '' and tonumber(limit) < now then
    admit(state, nil, wish.cursor)
    return done('late')
  end
  if before then
    -- Somebody else may have held it since, with a higher fence (acquire.rs, grant_anew).
    remove_holder(state, place)
    local lasts = math.max(tonumber(wish.ttl) * 1000, mine.expiry - now)
    local anew = grant(state, owner, mine.mode, lasts, wish.ttl, wish.party)
    admit(state, nil, wish.cursor)
    return done(granted(anew))
  end
  local kind = kind_in_force(state)
  if kind and kind ~= kind_of(mode) then
    if recovering then return inherited() end
    admit(state, nil, wish.cursor)
    return done('conflict ' .. kind)
  end
  -- Joining an empty queue only to be let in at once comes to the same as this.
  if state.waiting == 0 and not recovering and fits(state, mode) then return take() end

  if wish.waits then join(state, wish) elseif state.waiting > 0 then forget(state, {owner}) end
  local awaited = admit(state, owner, wish.cursor)
  mine = holder_of(state, owner)
  if mine then return done(granted(mine)) end
  if wish.waits then
    local ahead = call('ZRANK', state.queue, owner) or 0
    return done('queued ' .. ahead .. ' ' .. contention(state))
  end
  if not awaited and fits(state, mode) then return take() end
  return done('busy ' .. contention(state))
end

return carefully(5, careful)
