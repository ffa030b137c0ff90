-- End a hold and let in the next. Mirrors decide/release.rs, release.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>", 2 fence
-- says   released
--        nothing | forgotten <until> | forced <at> <pid> <host> <who> <label> <reason>

local function careful(lock)
  local state, owner, fence = load_state(lock), asker(), ARGV[a + 2]
  local holder, index = holder_of(state, owner, fence)
  local said = 'released'
  if holder then
    remove_holder(state, index)
  else
    said = not_held(state, owner, fence)
  end
  admit(state)
  save(state)
  return said, state.more
end

return carefully(2, careful)
