#!lua
-- stamp: writes the store's id into a partition that has none; every script checks it (F18). No prelude.
-- KEYS: the partition's "gw:{p07}:cnt". ARGV: id, sealed (1: the stamp must be there)
-- Reply: {the id found, or "" where it should be}
if ARGV[2] ~= '1' then redis.call('HSETNX', KEYS[1], 'id', ARGV[1]) end
return {redis.call('HGET', KEYS[1], 'id') or ''}
