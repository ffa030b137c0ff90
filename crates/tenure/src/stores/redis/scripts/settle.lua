-- Begins a life: writes a new record, if everything is still as whoever decided that saw it.
-- Not made of parts: it is run alone, before any other script is.
--
-- KEYS   1 the record (prelude.lua)
-- ARGV   1 the record that was seen ("" = none), 2 run id, 3 replication id, 4 how often data was wiped since
--        the server started ("-" = not looked), 5 for how long nobody is let in, microseconds,
--        6 life, 7 "<run> <line> <max_ttl> <durable> <cause> ...": the rest of the new record (memory/record.rs)
-- Answers "begun", or "again" if something has changed: look again, decide again.

local function shown(section, name)
  return string.match(redis.call('INFO', section), name .. ':([^\r\n]+)')
end

local function wipes()
  local count, stats = 0, redis.call('INFO', 'commandstats')
  for _, command in ipairs({'flushall', 'flushdb', 'swapdb'}) do
    count = count + tonumber(string.match(stats, 'cmdstat_' .. command .. ':calls=(%d+)') or 0)
  end
  return string.format('%d', count + tonumber(shown('stats', 'evicted_keys') or 0))
end

if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 'again' end
if shown('server', 'run_id') ~= ARGV[2] then return 'again' end
if shown('replication', 'master_replid') ~= ARGV[3] then return 'again' end
if ARGV[4] ~= '-' and wipes() ~= ARGV[4] then return 'again' end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
-- How long to wait, also for what the record that is replaced still waits for, is decided in one place: the
-- core's `hello`. Time has passed since then, so this opens no earlier than that said.
local moment = now + tonumber(ARGV[5])
redis.call('SET', KEYS[1], 'v1 ' .. ARGV[6] .. ' ' .. string.format('%d', moment) .. ' ' .. ARGV[7])
return 'begun'
