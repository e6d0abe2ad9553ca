// Tries the pages in Chromium; scripts/check-web starts the servers and passes their addresses as JSON.
'use strict';
const fs = require('fs'), path = require('path');
const given = JSON.parse(process.argv[2]);
const {chromium} = require(path.join(given.packages, 'playwright-core'));
const axe = path.join(given.packages, 'axe-core', 'axe.min.js');
const sizes = [{width: 1280, height: 900}, {width: 400, height: 800}], schemes = ['light', 'dark'];
let failures = 0;

function expect(condition, text) {
  if (condition) return;
  ++failures;
  console.error('check-web: ' + text);
}

async function withPage(browser, address, viewport, colorScheme, test, more = {}) {
  const context = await browser.newContext({viewport, colorScheme, ...more});
  const page = await context.newPage(), name = viewport.width + ' ' + colorScheme + ' ' + address;
  page.setDefaultTimeout(60000);
  page.on('pageerror', (error) => expect(false, name + ': ' + error.message));
  page.on('console', (message) => expect(message.type() !== 'error' || (address === given.guarded && message.text().includes('401')) || /^Blocked script execution in '\S+\/v1\/report\?/.test(message.text()), name + ': ' + message.text()));
  page.on('request', (request) => expect(request.url().startsWith(address) || /^(data|blob):/.test(request.url()), name + ': asks ' + request.url()));
  await page.goto(address);
  await test(page, async (picture) => {
    const scrolls = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    expect(!scrolls, name + ': ' + picture + ' is wider than the window');
    await page.screenshot({path: path.join(given.out, picture + '-' + viewport.width + '-' + colorScheme + '.png'), fullPage: true});
    // The policy of the page allows no other script, so axe is evaluated outside of it.
    await page.evaluate(fs.readFileSync(axe, 'utf8') + ';0');
    const {violations} = await page.evaluate(() => axe.run());
    for (const {id, nodes} of violations) expect(false, name + ': ' + picture + ': axe ' + id + ': ' + nodes[0].html);
  });
  await context.close();
}

async function uncheckAll(page) {
  for (const id of await page.$$eval('#runs input:checked', (boxes) => boxes.map((box) => box.id))) await page.uncheck('#' + id);
}
const pickOf = (page, run) => page.locator('#runs tr', {has: page.getByRole('rowheader', {name: run})}).locator('input');

async function trySheetAndTimeline(page) {
  await page.waitForFunction(() => document.querySelector('img.sheet')?.naturalWidth > 0);
  expect((await page.getAttribute('img.sheet', 'alt')).includes('training images'), 'the first training images have no text');
  const bars = page.locator('#timeline rect'), zoomed = page.locator('#timeline');
  await bars.first().waitFor();
  const all = await zoomed.getAttribute('aria-label');
  // A worker that the other one left nothing to do has no lane.
  for (const lane of [/trainer/, /worker [01]/]) expect(lane.test(await zoomed.textContent()), 'the timeline has no lane ' + lane);
  expect(await page.locator('#timeline-out').isDisabled(), 'a timeline that shows all can be zoomed out');
  await page.click('#timeline-in');
  const half = await zoomed.getAttribute('aria-label');
  expect(half !== all, 'the button does not zoom the timeline');
  await zoomed.focus();
  await page.keyboard.press('+');
  await page.keyboard.press('ArrowRight');
  expect(await zoomed.getAttribute('aria-label') !== half, 'keys do not zoom the timeline');
  await page.keyboard.press('Home');
  expect(await zoomed.getAttribute('aria-label') === all, 'Home does not show the whole timeline');
  await bars.first().hover();
  expect(/\d (µs|ms|s)/.test(await page.textContent('#timeline-value')), 'a bar does not tell its time');
  await page.locator('summary', {hasText: 'as a table'}).click();
  expect((await page.locator('#timeline-rows tr').allTextContents()).some((row) => /worker 0.*%/.test(row)), 'the table of the timeline has no worker');
}

async function tryWatch(page, look) {
  await page.waitForSelector('#runs input:checked');
  await uncheckAll(page);
  await pickOf(page, 'training').check();
  await page.waitForSelector('.line');
  const before = await page.getAttribute('.line', 'd');
  await page.waitForFunction((path) => ![path, null, undefined].includes(document.querySelector('.line')?.getAttribute('d')), before);
  await pickOf(page, 'finished').check();
  await page.waitForFunction(() => document.querySelectorAll('.chart:first-child .line').length === 4);

  const marked = page.locator('#options tr.differs th');
  expect((await marked.allTextContents()).some((text) => text.startsWith('lr')), 'the learning rates are not marked as different');
  const all = await page.locator('#options tr').count();
  await page.check('#differences');
  expect(await page.locator('#options tr').count() < all, 'only what differs shows all options');

  const column = page.locator('th[data-key=best_accuracy]');
  await column.locator('button').click();
  expect(await column.getAttribute('aria-sort') === 'descending', 'the list is not sorted by accuracy');
  await column.locator('button').press('Enter');
  expect(await column.getAttribute('aria-sort') === 'ascending', 'the list is not sorted the other way');

  await page.selectOption('#axis', 'steps');
  await page.check('#log');
  await page.locator('#smooth').fill('0.9');
  await page.waitForSelector('.faint');
  await page.locator('.chart svg').first().focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  expect((await page.textContent('#live')).includes('step'), 'arrow keys do not read values');
  await page.waitForFunction(() => [...document.querySelectorAll('.chart h3')].some((title) => title.textContent === 'CPU cores in use'));
  await look('watch');

  await uncheckAll(page);
  await pickOf(page, 'finished').check();
  await trySheetAndTimeline(page);
  await page.getByRole('button', {name: 'Show finished'}).click();
  const report = page.frameLocator('iframe');
  await report.locator('h2', {hasText: 'Confusion'}).waitFor();
  expect(await report.locator('.curves').isHidden(), 'the report within the page has the curves once more');
  const cell = report.locator('.confusion td a').first(), target = (await cell.getAttribute('href')).slice(1);
  await cell.click();
  expect(await report.locator('[id="' + target + '"]').isVisible(), 'a cell of the matrix shows no pictures');
}

async function tryReport(page, look) {
  await page.waitForSelector('#charts .line');
  expect(await page.locator('.static').first().isHidden(), 'the report shows plots and curves');
  expect(await page.locator('#charts .chart').count() >= 2, 'the report has no curves by epoch');
  await page.locator('#charts svg').first().hover();
  expect((await page.textContent('#charts .values')).includes('epoch'), 'the pointer does not read values of the report');
  await page.selectOption('#axis', 'steps');
  await page.check('#log');
  await page.locator('#smooth').fill('0.5');
  await page.waitForSelector('.faint');
  await page.locator('#charts svg').first().focus();
  await page.keyboard.press('Home');
  expect((await page.textContent('#live')).includes('step'), 'arrow keys do not read values of the report');
  await trySheetAndTimeline(page);
  const cell = page.locator('.confusion td a').first(), target = (await cell.getAttribute('href')).slice(1);
  await cell.click();
  expect(await page.locator('[id="' + target + '"]').isVisible(), 'a cell of the matrix of the report shows no pictures');
  for (const title of ['Training', 'Confusion matrix', 'How this page was made'])
    expect(await page.locator('h2', {hasText: title}).count() === 1, 'the report has no part "' + title + '"');
  await look('report');
}

async function tryReportWithoutScript(page) {
  expect(await page.locator('.static svg.plot').first().isVisible() || await page.locator('.static svg.plot').nth(1).isVisible(), 'without scripts the report has no plots');
  expect(await page.locator('#chart-bar').isHidden(), 'without scripts the report has controls');
  expect(await page.locator('#timeline').isHidden(), 'without scripts the report has an empty timeline');
  const cell = page.locator('.confusion td a').first(), target = (await cell.getAttribute('href')).slice(1);
  await cell.click();
  expect(await page.locator('[id="' + target + '"]').isVisible(), 'without scripts a cell shows no pictures');
}

async function tryToken(page, look) {
  await page.waitForSelector('#token');
  expect(await page.locator('#runs input').count() === 0, 'runs are shown without the token');
  await page.fill('#token', 'a-wrong-token-of-the-test');
  await page.press('#token', 'Enter');
  await page.waitForFunction(() => document.getElementById('error').textContent.includes('token'));
  await page.fill('#token', given.token);
  await page.press('#token', 'Enter');
  await page.waitForSelector('#runs input:checked');
  await page.waitForFunction(() => document.getElementById('state').textContent === 'live');
  expect(await page.locator('#token').isHidden(), 'the token is still asked for');
  await look('token');
}

async function tryServe(page, look) {
  await page.waitForSelector('#drop');
  const bytes = fs.readFileSync(given.picture).toString('base64');
  const transfer = await page.evaluateHandle((text) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], 'plate.png', {type: 'image/png'}));
    return data;
  }, bytes);
  await page.dispatchEvent('#drop', 'drop', {dataTransfer: transfer});
  const card = page.locator('.card');
  await card.locator('tr.first td').waitFor();
  expect(/^\d+\.\d\d %$/.test(await card.locator('tr.first td').textContent()), 'no probability is shown');
  await card.getByRole('button', {name: 'Show where'}).click();
  await page.waitForFunction(() => document.querySelector('.card img').alt.startsWith('Class activation map'));
  await look('serve');
}

(async () => {
  const browser = await chromium.launch({executablePath: given.chromium, args: ['--no-sandbox']});
  for (const viewport of sizes)
    for (const scheme of schemes) {
      await withPage(browser, given.watch, viewport, scheme, tryWatch);
      await withPage(browser, given.guarded, viewport, scheme, tryToken);
      await withPage(browser, given.serve, viewport, scheme, tryServe);
      await withPage(browser, given.report, viewport, scheme, tryReport);
      await withPage(browser, given.report, viewport, scheme, tryReportWithoutScript, {javaScriptEnabled: false});
    }
  await browser.close();
  console.log(failures ? 'check-web: ' + failures + ' failures' : 'check-web: the pages work; screenshots in ' + given.out);
  process.exit(failures ? 1 : 0);
})().catch((error) => { console.error('check-web: ' + error.message); process.exit(1); });
