#!lua
-- cfg: makes the canary of the whole store if there is none, reads it, or seals it. No prelude.
-- KEYS: "gw:cfg". ARGV: schema partitions id created seal (1: every partition is stamped) look (1: makes nothing)
-- Reply: {schema, partitions, id, sealed, next id or ""}; {0, 0, "", 0, ""} (there is none)
if redis.call('EXISTS', KEYS[1]) == 0 then
  if ARGV[6] == '1' then return {0, 0, '', 0, ''} end
  redis.call('HSET', KEYS[1], 'schema', ARGV[1], 'partitions', ARGV[2], 'id', ARGV[3], 'created', ARGV[4], 'sealed', 0)
end
if ARGV[5] == '1' and redis.call('HGET', KEYS[1], 'id') == ARGV[3] then redis.call('HSET', KEYS[1], 'sealed', 1) end
local c = redis.call('HMGET', KEYS[1], 'schema', 'partitions', 'id', 'sealed', 'next')
c[5] = c[5] or ''
return c
