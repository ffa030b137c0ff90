-- Turn an exclusive hold into a shared one, and let in the readers who wait. Mirrors decide/convert.rs.
--
-- KEYS   lock, fence, queue, alive, waiters, forced (see prelude.lua)
-- ARGV   1 nonce, 2 owner, 3 fence
-- says   converted <expiry>
--        conflict <capacity>
--        nothing | forced <at> <pid> <host> <who> <label> <reason>

local function careful(tools, k, a)
  local state = tools.load(k)
  local holder, said = tools.holder(state, ARGV[a + 2], ARGV[a + 3]), nil
  if not holder then
    said = tools.not_held(state, ARGV[a + 2], ARGV[a + 3])
  elseif tools.kind_of(holder.mode) ~= 'lock' then
    said = 'conflict ' .. tools.kind_of(holder.mode)
  else
    if holder.mode == 'x' then holder.mode, state.changed = 's', true end
    said = 'converted ' .. digits(holder.expiry)
  end
  tools.admit(state)
  tools.save(state)
  return said, state.more
end

return run(3, nil, careful)
