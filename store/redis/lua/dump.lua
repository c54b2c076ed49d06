#!lua flags=no-writes
-- dump: reads a lane with its dedupe marks and the last reply of a turn's write, for a copy. Own marks ("~": they answer
-- only the call that made them) stay here.
-- KEYS, ARGV 1-4: prelude.
-- Reply: {OK, lane, {mark, "<ms> <ticket> <done>" …}, {reply} or {}}
local marks, memo = {}, {}
for _, b in ipairs({s('ub'), s('uc')}) do
  local raw = b ~= '' and call('HGETALL', key('u' .. b)) or {}
  for i = 1, #raw, 2 do
    if string.sub(raw[i], 1, 1) ~= '~' then marks[#marks + 1], marks[#marks + 2] = raw[i], raw[i + 1] end
  end
end
local last = s('lc') ~= '' and call('GET', key('c'))
if last then memo[1] = unpk(last) end
return {'OK', view(), marks, memo}
