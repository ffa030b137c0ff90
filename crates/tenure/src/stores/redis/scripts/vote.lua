-- Give this server's voice in a quorum. Never queues and never hands over. Mirrors decide/vote.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>", 2 "<ttl> <pid> <host> <who> <label>", 3 ttl + 1 (for PX), 4 not_after ("" = none),
--        5 "<mode> <ballot> <fence>": "new" and the fence that is proposed, "raise" and the one to be
--        raised to, or "held" and that of the hold
-- says   granted <fence> <expiry>
--        busy <contention>
--        late
--        conflict lock | conflict <capacity>
--        nothing | forgotten <until> | forced <at> <pid> <host> <who> <label> <reason>

local function careful(lock)
  local state, owner, limit = load_state(lock), asker(), ARGV[a + 4]
  local ttl, party = match(ARGV[a + 2], '^(%d+) (.+)$')
  local mode, ballot, fence = match(ARGV[a + 5], '^(%S+) (%S+) (%d+)$')
  local wanted = tonumber(fence)
  local function done(said)
    save(state)
    return said, state.more
  end
  local function absent()
    return done(not_held(state, owner, fence))
  end
  -- Gives a vote this fence and end.
  local function vote(holder, number, expiry)
    local last = last_fence(state)
    holder.fence, holder.expiry, holder.touched, state.changed = number, expiry, true, true
    state.last = math.max(last, last_of(holder))
    state.granted = math.max(state.granted or 0, expiry - now)
    return done('granted ' .. digits(number) .. ' ' .. digits(expiry))
  end
  local function take(number)
    local last = last_fence(state)
    local holder = grant(state, owner, mode, tonumber(ttl) * 1000, ttl, party)
    state.last = last
    return vote(holder, number, holder.expiry)
  end

  -- vote.rs, may_have
  local function may_have()
    for _, holder in ipairs(state.holders) do
      if holder.owner ~= owner and holder.fence == wanted then return false end
    end
    return sub(not_held(state, owner, fence), 1, 7) ~= 'forced '
  end

  local awaited = admit(state)
  local mine = holder_of(state, owner)
  if mine and recovering and ballot ~= 'held' then
    -- From before: it may have ended since.
    return done('busy ' .. contention(state))
  end
  if mine then
    if ballot == 'raise' and mine.fence < wanted then
      -- What was set aside for the holder itself does not count.
      local alone = last_fence(state) == last_of(mine)
      return vote(mine, alone and wanted or math.max(wanted, last_fence(state) + 1), mine.expiry)
    elseif ballot ~= 'held' then
      return done('granted ' .. digits(mine.fence) .. ' ' .. digits(mine.expiry))
    elseif mine.fence > wanted or not may_have() then
      return absent()
    end
    mine.ttl = ttl
    return vote(mine, wanted, math.max(mine.expiry, now + tonumber(ttl) * 1000))
  end
  if ballot == 'raise' then return absent() end
  if limit ~= '' and tonumber(limit) < now then return done('late') end
  local kind = kind_in_force(state)
  if kind and kind ~= kind_of(mode) then return done('conflict ' .. kind) end
  local free = not awaited and fits(state, mode)
  if ballot == 'held' then
    -- Whoever was voted for here since was so in vain.
    if free and may_have() then return take(wanted) end
    return absent()
  end
  if free then return take(math.max(wanted, last_fence(state) + 1)) end
  return done('busy ' .. contention(state))
end

return carefully(5, careful)
