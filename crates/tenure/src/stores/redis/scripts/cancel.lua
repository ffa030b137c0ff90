-- Remove whatever an owner has here: its place, or the grant that raced with us. Mirrors decide/cancel.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>"
-- says   cancelled grant | cancelled waiter | cancelled nothing

local function careful(tools, lock, a)
  local state, owner = tools.load(lock), owner_of(a)
  local holder, index = tools.holder(state, owner)
  local removed = 'nothing'
  if state.waiting > 0 and tools.forget(state, {owner}) then removed = 'waiter' end
  if holder then
    tools.remove(state, index)
    removed = 'grant'
  end
  tools.admit(state)
  tools.save(state)
  return 'cancelled ' .. removed, state.more
end

return run(1, nil, careful)
