#!lua flags=no-writes
-- load: reads a lane without its rows.
-- KEYS, ARGV 1-4: prelude.
-- Reply: {OK, lane}
return {'OK', view()}
