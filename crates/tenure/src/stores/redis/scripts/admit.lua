-- Go on letting in, where an earlier step had looked at enough waiters. The rest of decide/admit.rs.
--
-- KEYS   lock, fence, queue, alive, waiters, forced (see prelude.lua)
-- ARGV   1 nonce, 2 "-", 3 cursor
-- says   admitted

local function careful(tools, k, a)
  local state = tools.load(k)
  tools.admit(state, nil, ARGV[a + 3])
  tools.save(state)
  return 'admitted', state.more
end

return run(3, nil, careful)
