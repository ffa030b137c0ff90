-- Remove whatever an owner has here: its place, or the grant that raced with us. Mirrors decide/cancel.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>"
-- says   cancelled grant | cancelled waiter | cancelled nothing

local function careful(lock)
  local state, owner = load_state(lock), asker()
  local holder, index = holder_of(state, owner)
  local removed = 'nothing'
  if state.waiting > 0 and forget(state, {owner}) then removed = 'waiter' end
  if holder then
    remove_holder(state, index)
    removed = 'grant'
  end
  admit(state)
  save(state)
  return 'cancelled ' .. removed, state.more
end

return carefully(1, careful)
