-- Prolong a hold; never shorten it, unless its holder leaves it behind. Mirrors decide/renew.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>", 2 fence, 3 ttl, 4 "1" if the holder leaves it behind, else "0"
-- says   renewed <expiry>
--        nothing | forced <at> <pid> <host> <who> <label> <reason>

local function careful(lock, a)
  local state, owner, fence = load_state(lock), owner_of(a), ARGV[a + 2]
  local holder, said = holder_of(state, owner, fence), nil
  if holder then
    holder.expiry = prolonged(holder.expiry, a)
    holder.ttl, holder.touched, state.changed = ARGV[a + 3], true, true
    said = 'renewed ' .. digits(holder.expiry)
  else
    said = not_held(state, owner, fence)
  end
  admit(state)
  save(state)
  return said, state.more
end

return carefully(4, first, replies, quick, careful)
