"use strict";
// A sweep's jobs: a table that sorts and filters; a job that is chosen anywhere is chosen everywhere.
const sweep = JSON.parse(document.getElementById("sweep-data").textContent);
const written = (key, value) => {
  if (value === undefined) return "–";
  const say = (number, unit) => `${number.toLocaleString("en", {maximumSignificantDigits: 4})} ${unit}`.trim();
  if (/^(accuracy|agreement)_/.test(key)) return say(100 * value, "%");
  if (key.endsWith("_us")) return value >= 1e6 ? say(value / 1e6, "s") : say(value / 1e3, "ms");
  if (key.endsWith("_uj")) return `${(value / 1e3).toLocaleString("en", {maximumSignificantDigits: 3})} mJ`;
  return value.toLocaleString("en", {maximumFractionDigits: 2}) + (key.endsWith("_bytes") ? " B" : "");
};
function chooseJob(number) {
  for (const each of document.querySelectorAll("[data-job]")) each.classList.toggle("chosen", Number(each.dataset.job) === number);
  const job = sweep.jobs[number];
  document.getElementById("front-said").textContent = `${job.name}: ${job.why || sweep.metrics.slice(0, 5).map(each => `${each.name} ${written(each.key, job.values[each.key])}`).join(", ")}`;
}
function named(job) {  // a link where the job has a page
  const found = document.createElement(job.page ? "a" : "span");
  if (job.page) found.href = job.page;
  found.append(...broken(job.name));
  return found;
}
(() => {
  const head = document.querySelector("#jobs thead tr"), body = document.querySelector("#jobs tbody");
  const columns = [["name", "job", ""], ["status", "status", ""], ...sweep.metrics.map(each => [each.key, each.name, each.counts])];
  let sorted = "", turned = 1;
  const value = (job, key) => key === "name" || key === "status" ? job[key] : job.values[key];
  const rows = sweep.jobs.map((job, number) => {
    const row = document.createElement("tr");
    row.dataset.job = number;
    row.insertCell().append(named(job));
    const status = row.insertCell();
    status.textContent = {ok: "fits", infeasible: "does not fit"}[job.status] ?? job.status;
    if (job.why) status.textContent += `; ${job.why}`;
    status.className = job.status === "ok" ? "text" : "text unfit";
    for (const each of sweep.metrics) row.insertCell().textContent = written(each.key, job.values[each.key]);
    row.addEventListener("click", () => chooseJob(number));
    body.append(row);
    return row;
  });
  for (const [key, name, counts] of columns) {
    const cell = document.createElement("th"), button = document.createElement("button");
    button.textContent = name;
    button.title = counts ? `${key}: ${counts}` : key;
    cell.scope = "col";
    if (key === "status") cell.className = "text";
    button.addEventListener("click", () => {
      turned = sorted === key ? -turned : 1;
      sorted = key;
      const order = rows.map((row, n) => n).sort((a, b) => {
        const one = value(sweep.jobs[a], key), other = value(sweep.jobs[b], key);
        if (one === undefined || other === undefined) return (one === undefined) - (other === undefined);
        return turned * (typeof one === "string" ? one.localeCompare(other) : one - other) || a - b;
      });
      body.append(...order.map(n => rows[n]));
      for (const each of head.cells) each.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", turned > 0 ? "ascending" : "descending");
    });
    cell.append(button);
    head.append(cell);
  }
  const filter = document.getElementById("filter"), shown = document.getElementById("shown");
  const narrow = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach(row => {
      row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
      count += !row.hidden;
    });
    shown.textContent = `${count} of ${rows.length}`;
  };
  filter.addEventListener("input", narrow);
  narrow();
})();
