-- Go on letting in, where an earlier step had looked at enough waiters. The rest of decide/admit.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> -", 2 cursor
-- says   admitted

local function careful(tools, lock, a)
  local state = tools.load(lock)
  tools.admit(state, nil, ARGV[a + 2])
  tools.save(state)
  return 'admitted', state.more
end

return run(2, nil, careful)
