-- The usual release: an exclusive hold of ours, and nobody waits (three commands), or first somebody who
-- wants it exclusively (release_handover.lua). KEYS, ARGV and what it says: see release.lua.

stride = #KEYS * 2 / (#ARGV - 1)

-- `hand_over(lock)`: whether it could be handed over quickly; if not, nothing has been done.
local hand_over = nil

quickly = function()
  while ARGV[a + 1] do
    local lock = KEYS[(request - 1) * stride + 1]
    local value = redis.pcall('GET', lock)
    local head = 'v1 ' .. sub(ARGV[a + 1], -32) .. ' ' .. ARGV[a + 2] .. ' '
    if type(value) ~= 'string' or find(value, head, 1, true) ~= 1 then return end
    local expiry = match(value, '^%d+ (%d+) ', #head + 1)
    if not expiry or tonumber(expiry) <= now then return end
    if call('EXISTS', '~tenure:{' .. lock .. '}:queue') == 0 then
      call('DEL', lock)
    elseif not hand_over or not hand_over(lock) then
      return
    end
    replies[request] = ARGV[a + 1] .. ' ' .. NOW .. ' - released'
    request, a = request + 1, a + 2
  end
end

if not recovering then pcall(quickly) end
if a == #ARGV then return replies end
