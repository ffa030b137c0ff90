-- End somebody else's hold, and remember for an hour who did and why. Mirrors decide/release.rs, force_release.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> <owner>", 2 fence, 3 party of whoever does it, 4 reason
-- says   released
--        nothing | forgotten <until> | forced <at> <pid> <host> <who> <label> <reason>

local function careful(lock)
  local state, owner, fence = load_state(lock), asker(), ARGV[a + 2]
  local holder, index = holder_of(state, owner, fence)
  local said = 'released'
  if holder then
    local text = owner .. ' ' .. fence .. ' ' .. NOW .. ' ' .. ARGV[a + 3] .. ' ' .. ARGV[a + 4]
    call('SET', state.forced, text, 'PX', HOUR)
    remove_holder(state, index)
  else
    said = not_held(state, owner, fence)
  end
  admit(state)
  save(state)
  return said, state.more
end

return carefully(4, careful)
