-- The usual renewal: an exclusive hold of ours, for as long as it was taken for. Two commands: nobody can be
-- let in beside it, so the queue can wait. KEYS, ARGV and what it says: see renew.lua.

stride = #KEYS * 4 / (#ARGV - 1)

quickly = function()
  while ARGV[a + 1] do
    local lock, ttl = KEYS[(request - 1) * stride + 1], ARGV[a + 3]
    local value = redis.pcall('GET', lock)
    local head = 'v1 ' .. sub(ARGV[a + 1], -32) .. ' ' .. ARGV[a + 2] .. ' '
    if type(value) ~= 'string' or find(value, head, 1, true) ~= 1 then return end
    local from, to = match(value, '^%d+ ()%d+()', #head + 1)
    local old = from and tonumber(sub(value, from, to - 1)) or 0
    if old <= now or find(value, ' ' .. ttl .. ' ', to, true) ~= to then return end
    local moment = now + ttl * 1000
    if moment < old and find(ARGV[a + 4], '1', 1, true) ~= 1 then moment = old end
    local expiry = format('%d', moment)
    call('SET', lock, sub(value, 1, from - 1) .. expiry .. sub(value, to),
      'PX', format('%d', math.ceil((moment - now) / 1000) + 1))
    replies[request] = ARGV[a + 1] .. ' ' .. NOW .. ' - renewed ' .. expiry
    request, a = request + 1, a + 4
  end
end

if not recovering then pcall(quickly) end
if a == #ARGV then return replies end
