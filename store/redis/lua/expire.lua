#!lua flags=allow-oom
-- expire: removes a lane that nobody needs. Allowed when memory is full: it frees some.
-- KEYS, ARGV 1-4: prelude. ARGV: idle (ms since it was touched)
-- Reply: {OK}; STALE; NEWER
local idle = num()
if not exists then return {'OK'} end
if newer() then return {'NEWER'} end
local has = 0
for _, kind in ipairs({'p', 'j', 'o'}) do has = has + call('EXISTS', key(kind)) end
if n('turn') ~= 0 or has > 0 or leased() or now - n('tch') < idle then return {'STALE'} end
unlink_lane()
for _, index in ipairs({'names', 'obx', 'due'}) do call('ZREM', P .. index, LANE) end
return {'OK'}
