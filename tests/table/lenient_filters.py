"""Filters whose answers depend on ANSI mode, for the rows of ``filter_rows``."""

from __future__ import annotations

#: Filters whose answers differ where ANSI mode is off, beside those of ``RAISING``.
LENIENT = r"""
i32 + 1 < 0
i64 + 1 < 0
i64 - 1 > 0
i16 * 2S < 0S
i8 + 1Y < 0Y
-i32 < 0
-i64 = i64
i32 / z is null
i32 % z is null
d / 0 is null
dc / z is null
dc38 + 1 is null
dc38 * dc38 is null
dcs * dcs > 1
dcs / dc is null
dc % dcs is null
cast(s as int) is null
cast(sf as int) = 1
cast(sf as bigint) is not null
cast(sf as smallint) = -2
cast('.' as int) = 0
cast('+' as int) is null
cast('-.5' as int) = 0
cast(s as double) is null
cast(s as float) is not null
cast(sf as float) > 1
cast(s as decimal(10,2)) is null
cast(sf as decimal(10,2)) > 1
cast(s as boolean) is null
cast(s as date) is null
cast(s as timestamp) is null
cast(s as timestamp_ntz) is null
cast(sd as timestamp) > '2020-01-01'
cast(i64 as int) < 0
cast(i64 as tinyint) = 1Y
cast(i32 as smallint) = -1S
cast(d as int) = 2147483647
cast(d as bigint) = 9223372036854775807
cast(d as tinyint) = -1Y
cast(f as smallint) = -1S
cast(f as bigint) > 100
cast(dcs as int) = -1
cast(dcs as bigint) > 0
cast(dc38 as int) = -1
cast(dc38 as bigint) is not null
cast(dc as decimal(5,2)) is null
cast(i64 as decimal(5,0)) is null
cast(d as decimal(5,2)) is null
cast(bo as decimal(1,1)) is null
cast(ts as int) is not null
cast(ts as tinyint) > 0
cast(dc as string) = '0.01'
cast(dcs as string) = '0E-18'
cast(dcs as string) = '1.250000000000000001'
concat(dcs, 'x') = '0E-18x'
dcs like '%E-18'
i32 = '1.5'
i32 = si
n32 = sf
i64 > s
f = '0.1'
f = sf
dc = sf
dc = '1.25'
f > i32
f + i32 > 1
f < i64
i32 in ('1', '2')
n32 in ('1', 'x')
dt in ('2020-01-01', '2020-1-2')
ts in ('2020-01-01 00:00:00', '2020-01-01')
d in ('1.0', '1')
si in (1, 2)
dcs in ('0E-18', '1')
coalesce(n32, 'x') = '1'
coalesce(n32, s) = '100'
case when bo then n32 else 'x' end = '5'
nullif(n32, '1') is null
if(bo, ts, '2020-01-01') = '2020-01-01'
if(bo, dt, s) like '2020%'
si + 1 > 2
si + i64 > 0
s + 1 is null
si / 2 > 1
si * dc > 1
-si > 0
- s is null
dt = '2020'
dt > s
ts > s
ntz > s
case si when 1 then true else false end
i32 between '0' and '100'
n32 between '-5.9' and '5.9'
not (i32 + 1 > 0)
bo or i32 + 1 > 0
i32 + 1 is not null and bo
i64 * 2 <=> 0
(i32 + 1) in (-2147483648, 3)
1 / 0 is null
2147483647 + 1 < 0
cast('x' as int) is null
cast('2020-13-01' as date) is null
cast(300 as tinyint) = 44Y
""".strip().split("\n")
