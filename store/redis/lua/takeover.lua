#!lua
-- takeover: gives the stored data a new id, step by step: announced in "gw:cfg", written to each partition, made good in
-- "gw:cfg". Whoever opens the store in between goes on with it. No prelude.
-- KEYS: "gw:cfg" or a partition's "gw:{p07}:cnt". ARGV: id step (begin | stamp | end)
-- Reply: {OK}
local id, step = ARGV[1], ARGV[2]
if step == 'begin' then
  redis.call('HSET', KEYS[1], 'next', id)
else
  redis.call('HSET', KEYS[1], 'id', id)
  redis.call('HDEL', KEYS[1], 'next')
end
return {'OK'}
