-- Remove whatever an owner has here: its place, or the grant that raced with us. Mirrors decide/cancel.rs.
--
-- KEYS   lock, fence, queue, alive, waiters, forced (see prelude.lua)
-- ARGV   1 nonce, 2 owner
-- says   cancelled grant | cancelled waiter | cancelled nothing

local function careful(tools, k, a)
  local state = tools.load(k)
  local holder, index = tools.holder(state, ARGV[a + 2])
  local removed = 'nothing'
  if state.waiting > 0 and tools.forget(state, {ARGV[a + 2]}) then removed = 'waiter' end
  if holder then
    tools.remove(state, index)
    removed = 'grant'
  end
  tools.admit(state)
  tools.save(state)
  return 'cancelled ' .. removed, state.more
end

return run(2, nil, careful)
