#!lua flags=no-writes
-- stats: the partition's counters.
-- KEYS, ARGV 1-4: prelude.
-- Reply: {OK, {name, value …}, lanes}
return {'OK', call('HGETALL', P .. 'cnt'), call('ZCARD', P .. 'names')}
