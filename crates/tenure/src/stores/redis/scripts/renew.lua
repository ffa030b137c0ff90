-- Prolong a hold; never shorten it, unless its holder leaves it behind. While recovering, take back a hold
-- that is not stored. Mirrors decide/renew.rs and decide/reinstate.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>", 2 fence, 3 ttl, 4 "<leaves> <terms>": "1" if the holder leaves it behind, else
--        "0"; "<mode> <pid> <host> <who> <label>" as the holder knows it, or "-"
-- says   renewed <expiry>
--        nothing | forgotten <until> | forced <at> <pid> <host> <who> <label> <reason>

-- Whether the two can be held at the same time.
local function go_together(one, other)
  return one ~= 'x' and other ~= 'x' and kind_of(one) == kind_of(other)
end

-- Whether a later grant is known that this hold cannot have lived to see, or its fence is another's.
local function was_succeeded(state, owner, mode, fence)
  if state.foreign then return true end
  if mode == 'x' and last_fence(state) > fence + FURTHER then return true end
  for _, holder in ipairs(state.holders) do
    local own = holder.owner == owner
    if not own and holder.fence == fence then return true end
    if holder.fence > fence and (own or not go_together(mode, holder.mode)) then return true end
  end
  return false
end

-- The higher fence wins: what is stored and cannot be held beside it gives way.
local function reinstate(state, owner, mode, party)
  local fence, ttl = tonumber(ARGV[a + 2]), ARGV[a + 3]
  if was_succeeded(state, owner, mode, fence) then return 'nothing' end
  state.last = math.max(last_fence(state), fence + FURTHER)
  for index = #state.holders, 1, -1 do
    local holder = state.holders[index]
    if holder.owner == owner or not go_together(mode, holder.mode) then remove_holder(state, index) end
  end
  if state.waiting > 0 then forget(state, {owner}) end
  local lasts = tonumber(ttl) * 1000
  table.insert(state.holders, {
    owner = owner, mode = mode, fence = fence, since = digits(math.min(fence, now)),
    expiry = now + lasts, ttl = ttl, party = party, fresh = true,
  })
  table.sort(state.holders, function(one, other) return one.fence < other.fence end)
  state.granted, state.changed = math.max(state.granted or 0, lasts), true
  return 'renewed ' .. digits(now + lasts)
end

-- When a renewal makes it end that ended at `old` before.
local function prolonged(old)
  local moment = now + tonumber(ARGV[a + 3]) * 1000
  return sub(ARGV[a + 4], 1, 1) == '1' and moment or math.max(old, moment)
end

local function careful(lock)
  local state, owner, fence = load_state(lock), asker(), ARGV[a + 2]
  local mode, party = match(ARGV[a + 4], '^%d (%S+) (%d+ %S+ %S+ %S+)$')
  local holder, said = holder_of(state, owner, fence), nil
  if holder then
    holder.expiry = prolonged(holder.expiry)
    holder.ttl, holder.touched, state.changed = ARGV[a + 3], true, true
    -- A server that went back in time may have a reader as the writer that it was.
    if recovering and mode == 's' and holder.mode == 'x' then holder.mode = 's' end
    said = 'renewed ' .. digits(holder.expiry)
    -- Whoever does not say how it holds may have lost it elsewhere.
    if recovering and not mode then said = 'forgotten ' .. recovering end
  else
    said = not_held(state, owner, fence)
    if mode and sub(said, 1, 10) == 'forgotten ' then
      said = reinstate(state, owner, mode, party)
    end
  end
  admit(state)
  save(state)
  return said, state.more
end

return carefully(4, careful)
