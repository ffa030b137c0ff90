-- The rules, for whatever the quick way does not answer. They mirror `decide` in crate tenure-core: mod.rs
-- and admit.rs. Keys, arguments and replies: see prelude.lua.

local EXAMINED = 50      -- waiters looked at in one step
local PURGED = 100       -- silent waiters dropped in one step
local SHOWN = 8          -- holders described to somebody who waits
local HOUR = '3600000'   -- how long a forced release is remembered, ms

local function kind_of(mode)
  return match(mode, '^p%d+/(%d+)$') or 'lock'
end

-- Mode::fits. Nothing fits beside a foreign holder.
local function fits(state, mode)
  if state.foreign then return false end
  if mode == 'x' then return #state.holders == 0 end
  local count, capacity = match(mode, '^p(%d+)/(%d+)$')
  local taken = 0
  for _, holder in ipairs(state.holders) do
    if not count then
      if holder.mode ~= 's' then return false end
    else
      taken = taken + tonumber(match(holder.mode, '^p(%d+)/') or capacity)
    end
  end
  return not count or taken + tonumber(count) <= tonumber(capacity)
end

local function is_mode(mode)
  return mode == 's' or mode == 'x' or find(mode, '^p%d+/%d+$')
end

local function unpack_holder(owner, mode, text)
  if #owner ~= 32 or not is_mode(mode) then return nil end
  local fence, since, expiry, ttl, party =
    match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+ %S+ %S+ %S+)$')
  if not fence then return nil end
  return {
    owner = owner, mode = mode, fence = tonumber(fence), since = since,
    expiry = tonumber(expiry), ttl = ttl, party = party,
  }
end

local function pack_holder(holder)
  return digits(holder.fence) .. ' ' .. holder.since .. ' ' .. digits(holder.expiry) .. ' '
    .. holder.ttl .. ' ' .. holder.party
end

local function found_foreign(state, what)
  state.stored = 'foreign'
  local rest = call('PTTL', state.lock)
  state.foreign = {what = what, expiry = rest >= 0 and now + rest * 1000 or nil}
end

local function keep(state, owner, holder)
  if holder.expiry > now then
    table.insert(state.holders, holder)
  else
    table.insert(state.dropped, owner)
    state.changed = true
  end
end

local function load_string(state, value)
  local owner, text = match(value, '^v1 (%x+) (.*)$')
  local holder = owner and unpack_holder(owner, 'x', text)
  if not holder then return found_foreign(state, 'string') end
  state.stored = 'string'
  keep(state, owner, holder)
end

local function load_hash(state)
  local all = call('HGETALL', state.lock)
  state.stored = 'hash'
  for index = 1, #all, 2 do
    local mode, text = match(all[index + 1], '^(%S+) (.*)$')
    if all[index] ~= 'tenure' then
      local holder = mode and unpack_holder(all[index], mode, text)
      if not holder then
        -- Somebody holds it in a way that we do not understand.
        state.holders, state.dropped, state.changed = {}, {}, false
        return found_foreign(state, 'hash')
      end
      keep(state, all[index], holder)
    end
  end
  table.sort(state.holders, function(one, other) return one.fence < other.fence end)
end

-- Forgets the places of these owners.
local function forget(state, owners)
  local gone = call('ZREM', state.queue, unpack(owners))
  call('ZREM', state.alive, unpack(owners))
  call('HDEL', state.waiters, unpack(owners))
  state.waiting = state.waiting - gone
  return gone > 0
end

-- Loads a name and forgets what has ended (Step::expire). With `looking`, nothing is written.
local function load_state(lock, looking)
  local state = {
    lock = lock, fence = beside(lock, 'fence'), queue = beside(lock, 'queue'),
    alive = beside(lock, 'alive'), waiters = beside(lock, 'waiters'),
    forced = beside(lock, 'forced'),
    holders = {}, dropped = {}, handovers = {}, stored = 'nothing', changed = false,
  }
  local value = redis.pcall('GET', state.lock)
  if type(value) == 'string' then
    load_string(state, value)
  elseif value then
    if not find(value.err, 'WRONGTYPE', 1, true) then error(value.err, 0) end
    local marker = redis.pcall('HGET', state.lock, 'tenure')
    if type(marker) == 'string' and sub(marker, 1, 3) == 'v1 ' then
      load_hash(state)
    else
      found_foreign(state, call('TYPE', state.lock).ok)
    end
  end
  state.waiting = call('ZCARD', state.queue)
  if state.waiting > 0 and not looking then
    local silent = call('ZRANGEBYSCORE', state.alive, '-inf', NOW, 'LIMIT', 0, PURGED)
    if #silent > 0 then forget(state, silent) end
    if #silent == PURGED then state.more = '-inf' end
  end
  return state
end

local function waiter_of(state, owner)
  local text = call('HGET', state.waiters, owner)
  return text and read_waiter(text)
end

-- LockState::kind, of holders and waiters of ours: a foreign holder has none.
local function kind_in_force(state)
  local first = state.holders[1]
  if not first and state.waiting > 0 then
    first = waiter_of(state, call('ZRANGE', state.queue, 0, 0)[1] or '')
  end
  return first and kind_of(first.mode)
end

-- LockState::holder, or with a fence LockState::held. Also answers where it is.
local function holder_of(state, owner, fence)
  for index, holder in ipairs(state.holders) do
    if holder.owner == owner and (not fence or digits(holder.fence) == fence) then
      return holder, index
    end
  end
end

local function remove_holder(state, index)
  table.insert(state.dropped, table.remove(state.holders, index).owner)
  state.changed = true
end

-- Fence::last_of_grant
local function last_of(holder)
  return holder.mode == 'x' and holder.fence + FURTHER or holder.fence
end

local function last_fence(state)
  if not state.last then
    state.last = tonumber(call('GET', state.fence) or 0) or 0
    for _, holder in ipairs(state.holders) do state.last = math.max(state.last, last_of(holder)) end
  end
  return state.last
end

-- Step::grant. `lasts` in microseconds.
local function grant(state, owner, mode, lasts, ttl, party)
  local fence = math.max(last_fence(state) + 1, now)
  local holder = {
    owner = owner, mode = mode, fence = fence, since = NOW, expiry = now + lasts, ttl = ttl,
    party = party, fresh = true,
  }
  state.last, state.granted, state.changed = last_of(holder), math.max(state.granted or 0, lasts), true
  table.insert(state.holders, holder)
  return holder
end

-- Step::let_in
local function let_in(state, owner, waiter, asks)
  local lasts = asks and tonumber(waiter.ttl) * 1000 or claim_window(waiter)
  forget(state, {owner})
  local holder = grant(state, owner, waiter.mode, lasts, waiter.ttl, waiter.party)
  if not asks then
    -- As it is now: the same step may raise its fence, and answers with that.
    local told = {channel = waiter.channel, owner = owner, fence = holder.fence, expiry = holder.expiry}
    table.insert(state.handovers, told)
  end
end

-- Step::admit, starting after `cursor` in the queue. Answers whether somebody who can be reached
-- still waits (Front::Awaited), or whether that is not known yet (state.more).
local function admit(state, asking, cursor)
  local after, examined = cursor or '-inf', 0
  if recovering then
    state.more = nil
    return true
  end
  if state.more then
    state.more = after
    return true
  end
  while state.waiting > 0 do
    -- Nothing fits beside these, so there is no need to look.
    if state.foreign or (state.holders[1] and state.holders[1].mode == 'x') then return true end
    local found =
      call('ZRANGEBYSCORE', state.queue, after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    local owner, ticket = found[1], found[2]
    if not owner then return false end
    if examined == EXAMINED then
      state.more = after
      return true
    end
    examined = examined + 1
    local waiter, asks = waiter_of(state, owner), owner == asking
    if not waiter then
      forget(state, {owner})
    elseif not asks and not reachable(waiter.channel) then
      after = '(' .. ticket
    elseif not fits(state, waiter.mode) then
      return true
    else
      let_in(state, owner, waiter, asks)
    end
  end
  return false
end

local function save_hash(state)
  local survivors, latest, fields = 0, 0, {}
  for _, holder in ipairs(state.holders) do
    if not holder.fresh then survivors = survivors + 1 end
    latest = math.max(latest, holder.expiry)
  end
  local rewrite = state.stored ~= 'hash' or survivors == 0
  if rewrite then
    local kind = kind_of(state.holders[1].mode)
    fields = {'tenure', kind == 'lock' and 'v1 lock' or 'v1 semaphore ' .. kind}
    if state.stored ~= 'nothing' then call('DEL', state.lock) end
  elseif #state.dropped > 0 then
    for first = 1, #state.dropped, 1000 do
      local last = math.min(first + 999, #state.dropped)
      call('HDEL', state.lock, unpack(state.dropped, first, last))
    end
  end
  for _, holder in ipairs(state.holders) do
    if rewrite or holder.fresh or holder.touched then
      table.insert(fields, holder.owner)
      table.insert(fields, holder.mode .. ' ' .. pack_holder(holder))
    end
  end
  for first = 1, #fields, 1000 do
    call('HSET', state.lock, unpack(fields, first, math.min(first + 999, #fields)))
  end
  call('PEXPIRE', state.lock, px(latest))
end

-- Writes back what has changed, then tells those who were let in. The fence goes first: if Redis
-- refuses to write (OOM, READONLY), it refuses the first write and nothing has happened.
local function save(state)
  if not state.changed then return end
  if state.granted then
    local ahead = math.max(state.granted, state.last - now)
    local remembered = digits(DAY + math.ceil(ahead / 1000))
    call('SET', state.fence, digits(state.last), 'PX', remembered)
  end
  local first = state.holders[1]
  if not first then
    if state.stored ~= 'nothing' and state.stored ~= 'foreign' then
      call('DEL', state.lock)
    end
  elseif first.mode == 'x' then
    local value = 'v1 ' .. first.owner .. ' ' .. pack_holder(first)
    call('SET', state.lock, value, 'PX', px(first.expiry))
  else
    save_hash(state)
  end
  for _, told in ipairs(state.handovers) do
    push(state.lock, told.channel, told.owner, digits(told.fence), digits(told.expiry))
  end
end

-- "<owner> <mode> <fence> <since> <expiry> <ttl> <pid> <host> <who> <label>"; a foreign holder has
-- "-" where nothing is known, and its Redis type for <who>.
local function show(holder)
  return holder.owner .. ' ' .. holder.mode .. ' ' .. pack_holder(holder)
end

local function show_foreign(foreign)
  local expiry = foreign.expiry and digits(foreign.expiry) or '-'
  return '- x - - ' .. expiry .. ' - 0 - ' .. foreign.what .. ' -'
end

-- "<count> <holder>..." for at most `limit` holders.
local function describe(state, limit)
  local shown = {}
  if state.foreign then table.insert(shown, show_foreign(state.foreign)) end
  for _, holder in ipairs(state.holders) do
    if #shown == limit then break end
    table.insert(shown, show(holder))
  end
  return #shown .. (#shown > 0 and ' ' or '') .. table.concat(shown, ' ')
end

-- inspect.rs, contention: "<holder count> <waiter count> <next expiry or -> <recovering until or ->
-- <shown> <holder>..."
local function contention(state)
  local soonest = state.foreign and state.foreign.expiry
  for _, holder in ipairs(state.holders) do
    soonest = math.min(soonest or holder.expiry, holder.expiry)
  end
  return (#state.holders + (state.foreign and 1 or 0)) .. ' ' .. state.waiting .. ' '
    .. (soonest and digits(soonest) or '-') .. ' ' .. (recovering or '-') .. ' '
    .. describe(state, SHOWN)
end

-- release.rs, not_held
local function not_held(state, owner, fence)
  local text, head = call('GET', state.forced), owner .. ' ' .. fence .. ' '
  if text and sub(text, 1, #head) == head then
    return 'forced ' .. sub(text, #head + 1)
  end
  return recovering and 'forgotten ' .. recovering or 'nothing'
end

-- Runs the rest of the batch, `width` ARGV per request: `careful(lock)` answers every case, and where to go on.
local function carefully(width, careful)
  stride = #KEYS * width / (#ARGV - 1)
  while ARGV[a + 1] do
    local fine, said, more = pcall(careful, KEYS[(request - 1) * stride + 1])
    if not fine then
      said, more = 'error ' .. (type(said) == 'table' and said.err or tostring(said)), nil
    end
    replies[request] = ARGV[a + 1] .. ' ' .. NOW .. ' ' .. (more or '-') .. ' ' .. said
    request, a = request + 1, a + width
    if quickly and not recovering then pcall(quickly) end
  end
  return replies
end
