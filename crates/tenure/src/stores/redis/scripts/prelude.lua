-- What every request shares; one EVALSHA runs a batch of requests of one kind. A script is made of this
-- file, the quick way of its kind (`<kind>_quick.lua`, if it has one), texts.lua, waiters.lua, rules.lua and
-- `<kind>.lua`. The quick way answers the usual case. It comes before the others and uses none of their
-- functions, because making those costs more than a quick request does, and calling them a third.
--
-- KEYS: the lock of each request. In a cluster, where every key must be declared, each is followed by
-- the five beside it, whose names are made of its own all the same (see `beside`):
--   lock       string "v1 <owner> <fence> <since> <expiry> <ttl> <pid> <host> <who> <label>" (exclusive),
--              or hash, field "tenure" -> "v1 lock" or "v1 semaphore <capacity>",
--              field <owner> -> "<mode> <fence> <since> <expiry> <ttl> <pid> <host> <who> <label>"
--   fence      string, the highest fence given or set aside
--   queue      sorted set, owner by ticket (order of arrival)
--   alive      sorted set, owner by the time until which its place is kept
--   waiters    hash, owner -> "<mode> <ttl> <since> <alive_for> <channel> <pid> <host> <who> <label>"
--   forced     string "<owner> <fence> <at> <pid> <host> <who> <label> <reason>"
-- ARGV 1: the life that the call was sent to, "r" to look whether it was another's replica since (else "-"),
-- and the key of the record that says which life this is, without spaces between; "" to ask nobody. Sixteen "-"
-- for the life: there was no record, and the caller may not write one.
-- The record: "v1 <life> <until> <run> <line> <max_ttl> <durable> <cause> <wait> <earlier> <witnessed> <place>"
-- (see memory/record.rs; here only the words up to max_ttl are read). In another life nothing is carried out, and
-- the whole reply is the text "other life".
-- ARGV from 2 on, `width` per request: 1 "<nonce> <owner or ->", then what the request's own file says. They are
-- few and packed, because each one costs the server as much as half a command does.
-- Reply, one text per request: "<nonce> <owner> <now> <more> <said...>". `more` is "-", or where to go
-- on in the queue because this step has looked at enough waiters. `said` is what the request's own
-- file lists, or "error <message>": one request's failure never touches another's.
--
-- Modes are "x", "s" or "p<count>/<capacity>". Times and fences are in microseconds of this server's
-- clock, ttl in milliseconds. Texts are percent-encoded by Rust, so a space always separates.
-- Numbers go to Redis as digits: Lua itself would write 1.7e+15.

local DAY = 86400000     -- how long a last fence is remembered after its grant has ended (and the
                         -- clock has passed it: it may have been set back), ms
local TWO_DAYS = '172800000'
local FURTHER = 31       -- fences set aside with an exclusive grant (Fence::last_of_grant)

local call, sub, find, match, format = redis.call, string.sub, string.find, string.match, string.format

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local NOW = format('%d', now)

-- While the server may have forgotten who holds what: until when, as a text. Nobody is let in then.
local recovering = nil

-- Since when this life lets people in. What was granted earlier is from another one.
local opened = 0

if ARGV[1] ~= '' then
  local record = call('GET', sub(ARGV[1], 18)) or ''
  if record ~= '' or find(ARGV[1], '-', 1, true) ~= 1 then
    local moment = match(record, '^ (%d+) ', 20)
    if not moment or find(record, sub(ARGV[1], 1, 16), 4, true) ~= 4 then return 'other life' end
    opened = tonumber(moment)
    if opened > now then
      recovering = moment
      -- Record::is_ahead: written when the clock was ahead, for longer than anything lasts.
      local longest = match(record, '^%S+ %S+ (%d+)', 21 + #moment + 1) or 0
      if moment - now > longest * 1000 + 2000000 then return 'other life' end
    end
  end
  if sub(ARGV[1], 17, 17) == 'r' then
    -- Record::is_of: this connection may have outlived a demotion and a promotion.
    local shown = call('INFO', 'replication')
    local line = match(shown, 'master_replid:(%x+)')
    local before = match(shown, 'master_replid2:(%x+)') or ''
    if not find(record, ' ' .. line .. ' ', 1, true) and find(before, '[^0]') then
      return 'other life'
    end
  end
end

-- How far the batch is: the requests before `request` have their reply, and the ARGV of this one begin
-- after `a`.
local replies, request, a = {}, 1, 1

-- The quick way, if this kind has one: answers requests and goes on, until one is not usual. An error counts as
-- that; whoever comes later must not overtake it. `stride` is how many KEYS a request has.
local quickly, stride = nil, nil
