-- The usual acquire: free, exclusive, for less than a day, and nobody waits. Three commands.
-- KEYS, ARGV and what it says: see acquire.lua.

local LAST = format('%d', now + FURTHER)
stride = #KEYS * 5 / (#ARGV - 1)

quickly = function()
  while ARGV[a + 1] do
    local lock, ttl, limit = KEYS[(request - 1) * stride + 1], ARGV[a + 3], ARGV[a + 4]
    if find(ARGV[a + 5], 'x ', 1, true) ~= 1 or ttl - 1 > DAY then return end
    if limit ~= '' and tonumber(limit) < now then return end
    local beside = '~tenure:{' .. lock .. '}:'
    if call('EXISTS', lock, beside .. 'queue') > 0 then return end
    -- NOW is the next fence, those up to LAST go with it. Unless a fence as high was given or set aside before, some
    -- microseconds ago or because the clock was set back: then the careful way must grant, which
    -- also sets how long that fence is remembered.
    local fence = beside .. 'fence'
    local last = call('SET', fence, LAST, 'PX', TWO_DAYS, 'GET')
    if last and (tonumber(last) or 0) >= now then
      call('SET', fence, last, 'PX', TWO_DAYS)
      return
    end
    local expiry = format('%d', now + (ttl - 1) * 1000)
    call('SET', lock, 'v1 ' .. sub(ARGV[a + 1], -32) .. ' ' .. NOW .. ' ' .. NOW .. ' ' .. expiry .. ' '
      .. ARGV[a + 2], 'PX', ttl)
    replies[request] = ARGV[a + 1] .. ' ' .. NOW .. ' - granted ' .. NOW .. ' ' .. expiry
    request, a = request + 1, a + 5
  end
end

if not recovering then pcall(quickly) end
if a == #ARGV then return replies end
