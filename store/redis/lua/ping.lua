#!lua
-- ping: gives the store's id and writes once: a server that reads and refuses every write does not serve. No prelude.
-- KEYS: "gw:cfg". ARGV: time
-- Reply: {id, or "" when the store is gone}
local id = redis.call('HGET', KEYS[1], 'id') or ''
if id ~= '' then redis.call('HSET', KEYS[1], 'ping', ARGV[1]) end
return {id}
