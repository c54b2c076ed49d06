#!lua flags=allow-oom
-- delete: removes a lane and all its generations. Allowed when memory is full: it frees some.
-- KEYS, ARGV 1-4: prelude.
-- Reply: {OK}; HELD; NEWER
if leased() then return {'HELD'} end
if not exists then return {'OK'} end
if newer() then return {'NEWER'} end
read_slot()
count('dropped', #tickets)
count('in_slot', -#tickets)
unlink_lane()
for _, index in ipairs({'names', 'obx', 'due'}) do call('ZREM', P .. index, LANE) end
for name, by in pairs(counts) do call('HINCRBY', P .. 'cnt', name, by) end
return {'OK'}
