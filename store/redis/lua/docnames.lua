#!lua flags=no-writes
-- docnames: the documents of the partition.
-- KEYS, ARGV 1-4: prelude.
-- Reply: {OK, {name …}}
return {'OK', call('HKEYS', P .. 'docv')}
