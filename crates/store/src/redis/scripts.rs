//! The operations that Redis does at once, as scripts.
//!
//! A record is a string: its revision in eight bytes, then its value. Its key is also in the index of its space, a
//! sorted set in the order of bytes, by which it is found in scans. What has expired leaves the index when it is looked
//! at: three of its keys, picked at random, with every put, and all that a scan meets.

use ::redis::Script;

pub(super) struct Scripts {
    pub(super) put: Script,
    pub(super) delete: Script,
    pub(super) touch: Script,
    pub(super) scan: Script,
    pub(super) append: Script,
    pub(super) read: Script,
    pub(super) trim: Script,
    pub(super) claim: Script,
    pub(super) renew: Script,
    pub(super) take: Script,
    pub(super) publish: Script,
}

impl Scripts {
    pub(super) fn new() -> Scripts {
        Scripts {
            put: Script::new(PUT),
            delete: Script::new(DELETE),
            touch: Script::new(TOUCH),
            scan: Script::new(SCAN),
            append: Script::new(APPEND),
            read: Script::new(READ),
            trim: Script::new(TRIM),
            claim: Script::new(CLAIM),
            renew: Script::new(RENEW),
            take: Script::new(TAKE),
            publish: Script::new(PUBLISH),
        }
    }
}

/// `record index`, then the key, where records are, what is stored, what is expected (``: anything, `-`: nothing, or
/// eight bytes), and how long it lives. Returns 1, or what is there instead.
const PUT: &str = r"
local record, index = KEYS[1], KEYS[2]
local key, place, new, expect, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local found = redis.call('GETRANGE', record, 0, 7)
if found == string.sub(new, 1, 8) then return 1 end
if (expect == '-' and found ~= '') or (#expect == 8 and found ~= expect) then
  return redis.call('GET', record)
end
redis.call('SET', record, new, 'PX', ttl)
redis.call('ZADD', index, 0, key)
for _, one in ipairs(redis.call('ZRANDMEMBER', index, 3)) do
  if redis.call('EXISTS', place .. one) == 0 then redis.call('ZREM', index, one) end
end
if redis.call('PTTL', index) < tonumber(ttl) then redis.call('PEXPIRE', index, ttl) end
return 1";

/// `record index`, then the key and what is expected. Returns 1, 0 if nothing is there, or what is there instead.
const DELETE: &str = r"
local found = redis.call('GETRANGE', KEYS[1], 0, 7)
if found == '' then return 0 end
if ARGV[2] ~= '' and found ~= ARGV[2] then return redis.call('GET', KEYS[1]) end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1";

/// Records and their indexes in turn, then how long they live.
const TOUCH: &str = r"
for at = 1, #KEYS, 2 do
  if redis.call('PEXPIRE', KEYS[at], ARGV[1]) == 1
      and redis.call('PTTL', KEYS[at + 1]) < tonumber(ARGV[1]) then
    redis.call('PEXPIRE', KEYS[at + 1], ARGV[1])
  end
end
return 1";

/// `index`, then where records are, the first and last key as ZRANGEBYLEX has them, and how many are wanted. Returns
/// the last key that was looked at, or nothing at the end, and keys and records in turn: at most 4 MiB, or one.
const SCAN: &str = r"
local out, bytes, seen, from, wanted = {}, 0, 0, ARGV[2], 2 * tonumber(ARGV[4])
while #out < wanted and seen < 1000 do
  local keys = redis.call('ZRANGEBYLEX', KEYS[1], from, ARGV[3], 'LIMIT', 0, 100)
  if #keys == 0 then return {'', out} end
  for _, key in ipairs(keys) do
    seen = seen + 1
    local found = redis.call('GET', ARGV[1] .. key)
    if found then
      out[#out + 1] = key
      out[#out + 1] = found
      bytes = bytes + #found
      if #out == wanted or bytes > 4194304 then return {key, out} end
    else
      redis.call('ZREM', KEYS[1], key)
    end
    from = '(' .. key
  end
end
return {string.sub(from, 2), out}";

/// `meta entries`, then the first number, the fence, how long it lives, and the entries. Returns what became of it and
/// a number.
const APPEND: &str = r"
local first, fence, ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local meta = redis.call('HMGET', KEYS[1], 'fence', 'first')
local known = 0
if meta[1] then
  if fence < tonumber(meta[1]) then return {'stale', meta[1]} end
  local next = tonumber(meta[2]) + redis.call('LLEN', KEYS[2])
  if first > next then return {'gap', string.format('%.0f', next)} end
  known = next - first
else
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[1], 'first', ARGV[1])
end
for at = 4 + known, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[at]) end
redis.call('HSET', KEYS[1], 'fence', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('PEXPIRE', KEYS[2], ttl)
return {'stored', '0'}";

/// `meta entries`, then the number after which to read and the most bytes. Returns nothing if there is no such log, or
/// whether entries are gone, a number, and the entries.
const READ: &str = r"
local first = tonumber(redis.call('HGET', KEYS[1], 'first') or '')
if not first then return false end
local after, most = tonumber(ARGV[1]), tonumber(ARGV[2])
if after + 1 < first then return {'trimmed', string.format('%.0f', first - 1), {}} end
local out, bytes, at, count = {}, 0, after + 1 - first, redis.call('LLEN', KEYS[2])
local next = string.format('%.0f', first + count)
while at < count do
  for _, entry in ipairs(redis.call('LRANGE', KEYS[2], at, at + 15)) do
    bytes = bytes + #entry
    if #out > 0 and bytes > most then return {'entries', next, out} end
    out[#out + 1] = entry
  end
  at = at + 16
end
return {'entries', next, out}";

/// `meta entries`, then the last number that is deleted.
const TRIM: &str = r"
local first = tonumber(redis.call('HGET', KEYS[1], 'first') or '')
if not first then return 0 end
local next = first + redis.call('LLEN', KEYS[2])
local new = math.min(math.max(tonumber(ARGV[1]) + 1, first), next)
if new > first then
  redis.call('LTRIM', KEYS[2], new - first, -1)
  redis.call('HSET', KEYS[1], 'first', string.format('%.0f', new))
end
return 1";

/// `lease fence`, then the owner and how long. Returns the fence, or who holds the lease and for how long.
const CLAIM: &str = r"
local held = redis.call('GET', KEYS[1])
if held then
  local at = string.find(held, ' ', 1, true)
  local owner = string.sub(held, at + 1)
  if owner ~= ARGV[1] then return {owner, redis.call('PTTL', KEYS[1])} end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {string.sub(held, 1, at - 1)}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local fence = string.format('%.0f', math.max(now, tonumber(redis.call('GET', KEYS[2]) or '0') + 1))
redis.call('SET', KEYS[2], fence, 'PX', 86400000)
redis.call('SET', KEYS[1], fence .. ' ' .. ARGV[1], 'PX', ARGV[2])
return {fence}";

/// `lease`, then the fence, and how long, or nothing to release it. Returns whether it was held.
const RENEW: &str = r"
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 1, string.find(held, ' ', 1, true) - 1) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1";

/// `bucket`, then the times in microseconds that the cost takes to fill, and the whole bucket. Returns how long to
/// wait.
const TAKE: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + tonumber(ARGV[1])
local wait = full - now - tonumber(ARGV[2])
if wait > 0.01 then return math.ceil(wait) end
redis.call('SET', KEYS[1], string.format('%.17g', full), 'PX', math.max(1, math.ceil((full - now) / 1000)))
return 0";

/// `topic`, which is also its channel, then how long its version is kept.
const PUBLISH: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local version = string.format('%.0f', math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0') + 1))
redis.call('SET', KEYS[1], version, 'PX', ARGV[1])
redis.call('PUBLISH', KEYS[1], version)
return version";
