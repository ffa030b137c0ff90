-- Turn an exclusive hold into a shared one, and let in the readers who wait. Mirrors decide/convert.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>", 2 fence
-- says   converted <expiry>
--        conflict <capacity>
--        nothing | forced <at> <pid> <host> <who> <label> <reason>

local function careful(tools, lock, a)
  local state, owner, fence = tools.load(lock), owner_of(a), ARGV[a + 2]
  local holder, said = tools.holder(state, owner, fence), nil
  if not holder then
    said = tools.not_held(state, owner, fence)
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

return run(2, nil, careful)
