-- The usual vote: a new one where it is free, exclusive, for less than a day, and nobody waits. Three commands.
-- KEYS, ARGV and what it says: see vote.lua.

stride = #KEYS * 5 / (#ARGV - 1)

quickly = function()
  while ARGV[a + 1] do
    local lock, ttl, limit = KEYS[(request - 1) * stride + 1], ARGV[a + 3], ARGV[a + 4]
    local proposal = match(ARGV[a + 5], '^x new (%d+)$')
    if not proposal or proposal == '0' or ttl - 1 > DAY then return end
    if limit ~= '' and tonumber(limit) < now then return end
    -- Far ahead of this clock: the careful way sets how long it is remembered.
    if tonumber(proposal) >= now + DAY * 1000 then return end
    local beside = '~tenure:{' .. lock .. '}:'
    if call('EXISTS', lock, beside .. 'queue') > 0 then return end
    -- The proposal is the next fence, and those set aside go with it. Unless one as high was given before.
    local fence = beside .. 'fence'
    local last = call('SET', fence, format('%d', proposal + FURTHER), 'PX', TWO_DAYS, 'GET')
    if last and (tonumber(last) or 0) >= tonumber(proposal) then
      call('SET', fence, last, 'PX', TWO_DAYS)
      return
    end
    local expiry = format('%d', now + (ttl - 1) * 1000)
    call('SET', lock, 'v1 ' .. sub(ARGV[a + 1], -32) .. ' ' .. proposal .. ' ' .. NOW .. ' ' .. expiry .. ' '
      .. ARGV[a + 2], 'PX', ttl)
    replies[request] = ARGV[a + 1] .. ' ' .. NOW .. ' - granted ' .. proposal .. ' ' .. expiry
    request, a = request + 1, a + 5
  end
end

if not recovering then pcall(quickly) end
if a == #ARGV then return replies end
