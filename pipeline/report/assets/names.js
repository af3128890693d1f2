"use strict";
// A name that may go on in the next line after each of its parts, and is copied as it is.
const broken = name => name.split(/(?<=[._=/])/).flatMap((part, n) => n ? [document.createElement("wbr"), part] : [part]);
