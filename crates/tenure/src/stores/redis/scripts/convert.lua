-- Turn an exclusive hold into a shared one, and let in the readers who wait. Mirrors decide/convert.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>", 2 fence
-- says   converted <expiry>
--        conflict <capacity>
--        nothing | forgotten <until> | forced <at> <pid> <host> <who> <label> <reason>

local function careful(lock)
  local state, owner, fence = load_state(lock), asker(), ARGV[a + 2]
  local holder, said = holder_of(state, owner, fence), nil
  if not holder then
    said = not_held(state, owner, fence)
  elseif kind_of(holder.mode) ~= 'lock' then
    said = 'conflict ' .. kind_of(holder.mode)
  else
    if holder.mode == 'x' then holder.mode, state.changed = 's', true end
    said = 'converted ' .. digits(holder.expiry)
  end
  admit(state)
  save(state)
  return said, state.more
end

return carefully(2, careful)
