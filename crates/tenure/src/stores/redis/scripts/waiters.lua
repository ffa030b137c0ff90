-- How a waiter is kept and reached. Keys, arguments and replies: see prelude.lua.

-- Reads an entry of the hash of waiters; nil if it is not ours.
local function read_waiter(text)
  local mode, ttl, since, alive_for, channel, party =
    match(text, '^(%S+) (%d+) (%d+) (%d+) (%S+) (%d+ %S+ %S+ %S+)$')
  if not mode then return nil end
  return {mode = mode, ttl = ttl, since = since, alive_for = tonumber(alive_for),
    channel = channel, party = party}
end

-- Liveness::reachable. Not the answer of PUBLISH: it counts pattern subscribers, who only listen
-- in, and it comes too late to pass somebody over. Who may not ask takes everybody for reachable.
local function reachable(channel)
  local count = redis.pcall('PUBSUB', 'NUMSUB', channel)
  return count.err ~= nil or tonumber(count[2]) > 0
end

-- How long a grant lasts that is pushed to its waiter, microseconds.
local function claim_window(waiter)
  return math.floor(waiter.alive_for / 2)
end

-- Tells a waiter that it was let in, and in which life ("-" = not known). All texts.
local function push(lock, channel, owner, fence, expiry)
  local life = find(ARGV[1], '^%x') and sub(ARGV[1], 1, 16) or '-'
  redis.pcall('PUBLISH', channel,
    'v2 ' .. owner .. ' ' .. fence .. ' ' .. NOW .. ' ' .. expiry .. ' ' .. life .. ' ' .. lock)
end
