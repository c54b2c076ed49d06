#!lua
-- touch: writes once, so that a WAIT behind it is about all that was written before. No prelude.
-- KEYS: the partition's "gw:{p07}:cnt". ARGV: none
-- Reply: {OK}
if redis.call('HEXISTS', KEYS[1], 'id') == 1 then redis.call('HINCRBY', KEYS[1], 'touched', 1) end
return {'OK'}
