-- Go on letting in, where an earlier step had looked at enough waiters. The rest of decide/admit.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> -", 2 cursor
-- says   admitted

local function careful(lock)
  local state = load_state(lock)
  admit(state, nil, ARGV[a + 2])
  save(state)
  return 'admitted', state.more
end

return carefully(2, careful)
