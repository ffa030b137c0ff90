-- Look, and change nothing: works on a read-only replica too. Mirrors decide/inspect.rs.
--
-- KEYS   lock (see prelude.lua)
-- ARGV   1 "<nonce> -"
-- says   state <kind> <last fence> <count> <holder>... <count> <waiter>...
--        kind is "-", "lock" or a capacity; holders as in prelude.lua,
--        waiters "<owner> <mode> <since> <pid> <host> <who> <label>"

local function careful(lock)
  local state = load_state(lock, true)
  local until_by, waiters, kind = {}, {}, nil
  if state.foreign then kind = 'lock' end
  if state.holders[1] then kind = kind_of(state.holders[1].mode) end
  local alive = call('ZRANGE', state.alive, 0, -1, 'WITHSCORES')
  for index = 1, #alive, 2 do until_by[alive[index]] = tonumber(alive[index + 1]) end
  for _, owner in ipairs(call('ZRANGE', state.queue, 0, -1)) do
    local waiter = (until_by[owner] or 0) > now and waiter_of(state, owner)
    if waiter then
      kind = kind or kind_of(waiter.mode)
      table.insert(waiters, owner .. ' ' .. waiter.mode .. ' ' .. waiter.since .. ' ' .. waiter.party)
    end
  end
  local said = 'state ' .. (kind or '-') .. ' ' .. digits(last_fence(state)) .. ' '
    .. describe(state, math.huge) .. ' ' .. #waiters
  if #waiters > 0 then said = said .. ' ' .. table.concat(waiters, ' ') end
  return said
end

return carefully(1, careful)
