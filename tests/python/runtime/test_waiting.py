"""Event loops, threads, cancelling, timeouts, closing, forks, the interpreter's end."""

import asyncio
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import seqconv
from conftest import LANGUAGE_MODEL, MODEL, UNLIMITED

TEXTS = ["dalan", "mira dalan", "zo", ""] * 16


def test_tasks_get_what_lists_get(translator):
    async def main():
        tasks = [translator.translate_async(text) for text in TEXTS]
        return await asyncio.gather(*tasks), await translator.translate_async(TEXTS)

    one_by_one, together = asyncio.run(main())
    assert one_by_one == together == translator.translate(TEXTS)


def test_loops_go_on_meanwhile(unlimited, endless):
    async def main():
        task = asyncio.ensure_future(unlimited.translate_async("dalan", **endless))
        for _ in range(3):
            await asyncio.sleep(0.01)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            await unlimited.translate_async("dalan", timeout=0.02, **endless)
        return (await unlimited.translate_async("dalan", max_length_b=3)).ok

    assert asyncio.run(main())


def test_a_timeout_of_asyncio_ends_the_request(unlimited, endless):
    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(unlimited.translate_async("dalan", **endless), 0.05)

    asyncio.run(main())


def test_results_come_as_async_iterators(translator, generator):
    async def texts():
        for text in TEXTS * 10:
            await asyncio.sleep(0)
            yield text

    async def main():
        found = [one.text async for one in translator.translate_iter_async(texts())]
        assert found == [one.text for one in translator.translate(TEXTS * 10)]
        assert found[:3] == [
            one.text async for one in translator.translate_iter_async(TEXTS[:3])]
        stream = generator.stream_async("dalan", length=30)
        parts = [part.text async for part in stream]
        assert (await stream.result()).text == parts[-1] == generator.generate("dalan", length=30).text

    asyncio.run(main())


def test_an_async_stream_may_be_left(unlimited, endless):
    async def main():
        async with unlimited.stream_async("dalan", **{**endless, "beam": 1}) as stream:
            async for part in stream:
                assert part.text
                break
        return await stream.result()

    assert isinstance(asyncio.run(main()).error, seqconv.RequestCancelled)


def test_failures_are_raised_where_they_are_awaited(translator):
    async def main():
        with pytest.raises(seqconv.RequestError, match="UTF-8"):
            await translator.translate_async("\ud800")
        with pytest.raises(TypeError):
            await translator.translate_async(3)
        found = await translator.translate_async(["dalan", "\ud800"])
        assert [one.ok for one in found] == [True, False]

    asyncio.run(main())


def test_a_full_queue_refuses():
    async def main():
        with seqconv.Translator(UNLIMITED, threads=1, queue_limit=2) as model:
            options = {"beam": 200, "min_length": 10**6, "max_length_b": 10**6}
            def ask():
                return asyncio.ensure_future(model.translate_async("dalan", **options))

            tasks = [ask()]
            await asyncio.sleep(0.1)  # the only thread has its work before others wait
            tasks += [ask() for _ in range(5)]
            await asyncio.sleep(0.05)
            refused = [task for task in tasks if task.done()]
            assert len(refused) == 3
            for task in refused:
                assert isinstance(task.exception(), seqconv.QueueFull)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_several_loops_in_turn_and_at_a_time(translator):
    async def main():
        return [one.text for one in await translator.translate_async(["dalan", "mira"])]

    wanted = asyncio.run(main())
    found = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(main()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 8


def test_a_thousand_threads(translator):
    found = []
    wanted = translator.translate("dalan").text
    threads = [threading.Thread(target=lambda: found.append(translator.translate("dalan").text))
               for _ in range(1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 1000


def test_the_interpreter_goes_on_while_a_thread_waits(unlimited, endless):
    found = []
    thread = threading.Thread(
        target=lambda: found.append(unlimited.translate(["dalan"], timeout=0.3, **endless)[0]))
    thread.start()
    count = 0
    while thread.is_alive():
        count += 1
        time.sleep(0.001)
    assert count > 50
    assert isinstance(found[0].error, seqconv.RequestTimeout)


def test_closing_ends_what_is_under_way(endless):
    model = seqconv.Translator(UNLIMITED)
    found = []
    thread = threading.Thread(target=lambda: found.extend(model.translate(["dalan"] * 2, **endless)))
    thread.start()
    time.sleep(0.05)
    stream = model.stream("dalan", **endless)
    model.close()
    thread.join()
    assert [type(one.error) for one in found] == [seqconv.RequestCancelled] * 2
    assert isinstance(stream.result.error, seqconv.RequestCancelled)
    assert model.closed
    model.close()
    for call in (lambda: model.translate("a"), lambda: model.stream("a"), lambda: model.info,
                 lambda: model.tokenize("a"), lambda: asyncio.run(model.translate_async("a"))):
        with pytest.raises(seqconv.ClosedError, match="Translator was closed"):
            call()


def test_a_forgotten_model_is_closed(endless):
    async def main():
        model = seqconv.Translator(UNLIMITED)
        task = asyncio.ensure_future(model.translate_async("dalan", **endless))
        await asyncio.sleep(0.02)
        del model
        gc.collect()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_an_interrupt_ends_a_call():
    program = f"""
import os, seqconv, signal, threading, time
model = seqconv.Translator({os.fspath(UNLIMITED)!r})
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.time()
try:
    model.translate("dalan", beam=400, min_length=10**6, max_length_b=10**6)
except KeyboardInterrupt:
    print("interrupted", time.time() - start < 20, model.translate("dalan", max_length_b=3).ok)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted True True\n", done.stderr


def test_the_interpreter_may_end_with_work_under_way():
    program = f"""
import asyncio, seqconv, threading, time
model = seqconv.Translator({os.fspath(UNLIMITED)!r})
options = dict(beam=400, min_length=10**6, max_length_b=10**6)
def translate():
    try:
        model.translate("dalan", **options)
    except seqconv.RequestCancelled:
        pass
threading.Thread(target=translate, daemon=True).start()
stream = model.stream("dalan", **options)
generator = seqconv.Generator({os.fspath(LANGUAGE_MODEL)!r})
more = generator.stream("", length=10**9)
next(more)
time.sleep(0.1)
print("end", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def _in_child(texts, model, found):
    found.put([one.text for one in model.translate(texts)] + [
        asyncio.run(model.translate_async("dalan")).text])


def test_a_forked_child_may_use_its_parents_model(translator):
    wanted = [one.text for one in translator.translate(["dalan", "mira", "dalan"])]
    context = multiprocessing.get_context("fork")
    found = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(["dalan", "mira"], translator, found))
    child.start()
    assert found.get() == wanted
    child.join()
    assert child.exitcode == 0
    assert translator.translate("dalan").text == wanted[0]


def test_calls_do_not_grow_memory(translator):
    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    async def many(count):
        for _ in range(count):
            await translator.translate_async("dalan mira")

    def calls(count):
        asyncio.run(many(count))
        for _ in range(count):
            translator.translate("dalan mira", alignments="pairs")
            list(translator.stream("dalan"))
            with pytest.raises(seqconv.SeqconvError):
                seqconv.Translator("/nowhere")
        gc.collect()

    calls(100)
    # A model keeps memory for as many batches as have met so far: some rounds may grow by that.
    growth = []
    for _ in range(5):
        before = resident()
        calls(100)
        growth.append(resident() - before)
    assert min(growth) < 100 * 2**9
    descriptors = len(os.listdir("/proc/self/fd"))
    calls(20)
    assert len(os.listdir("/proc/self/fd")) <= descriptors


def test_interrupts_lose_and_crash_nothing():
    """Ctrl-C at many moments of calls and streams, several a call."""
    program = f"""
import os, seqconv, signal, threading, time
model = seqconv.Translator({os.fspath(UNLIMITED)!r})
options = dict(beam=8, min_length=400, max_length_b=400)
whole = model.translate("dalan", **options).text
stop = False
def interrupt():
    while not stop:
        time.sleep(.003)
        os.kill(os.getpid(), signal.SIGINT)
caught = 0
thread = threading.Thread(target=interrupt)
try:
    thread.start()
    for _ in range(15):
        for work in (lambda: model.translate(["dalan"] * 3, **options),
                     lambda: model.stream("dalan", **options).result):
            try:
                work()
            except KeyboardInterrupt:
                caught += 1
    stop = True
except KeyboardInterrupt:
    stop = True
while True:
    try:
        thread.join()
        break
    except KeyboardInterrupt:
        pass
print(caught > 3, model.translate("dalan", **options).text == whole)
model.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True True\n", done.stderr


def test_a_signal_handler_may_close_the_model():
    program = f"""
import os, seqconv, signal, threading
model = seqconv.Translator({os.fspath(UNLIMITED)!r})
signal.signal(signal.SIGTERM, lambda *_: model.close())
threading.Timer(.2, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
found = model.translate(["dalan"], beam=400, min_length=10**6, max_length_b=10**6)
print(type(found[0].error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "RequestCancelled\n", done.stderr


def test_loops_that_end_with_requests_pending_leave_no_descriptor(unlimited, endless):
    async def main():
        async for _ in unlimited.stream_async("dalan", **{**endless, "beam": 1}):
            break
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(unlimited.translate_async("dalan", **endless), 0.005)

    asyncio.run(main())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        asyncio.run(main())
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_all_who_wait_for_an_async_stream_are_told(translator):
    async def main():
        stream = translator.stream_async("dalan mira")
        return await asyncio.wait_for(asyncio.gather(stream.result(), stream.result()), 30)

    first, second = asyncio.run(main())
    assert first == second


def test_iterators_heed_the_queues_limit():
    async def main():
        with seqconv.Translator(MODEL, threads=1, queue_limit=2) as model:
            return [one.text async for one in model.translate_iter_async(["dalan"] * 50)]

    assert len(asyncio.run(main())) == 50


def test_draws_of_a_list_differ_in_every_way(translator):
    options = {"sample": True, "temperature": 2.0}
    assert len({one.text for one in translator.translate(["dalan"] * 8, **options)}) > 3
    found = asyncio.run(translator.translate_async(["dalan"] * 8, **options))
    assert len({one.text for one in found}) > 3


def test_draws_are_those_of_the_text_however_it_comes(translator):
    options = {"sample": True, "temperature": 2.0, "max_length_b": 6}
    texts = ["dalan"] * 2100  # more than an iterable's window
    wanted = [one.text for one in translator.translate(texts, **options)]
    assert wanted[1024:2048] != wanted[:1024]
    assert wanted == [one.text for one in translator.translate_iter(iter(texts), **options)]

    async def main():
        listed = await translator.translate_async(texts[:20], **options)
        return [one.text for one in listed], [
            one.text async for one in translator.translate_iter_async(texts[:20], **options)]

    assert asyncio.run(main()) == (wanted[:20], wanted[:20])


def test_results_do_not_wait_for_the_next_text(translator):
    async def main():
        heard = asyncio.Event()
        ended = []

        async def texts():
            try:
                yield "dalan"
                await heard.wait()
                yield "mira"
                await asyncio.sleep(3600)
            finally:
                ended.append(True)

        found = translator.translate_iter_async(texts())
        first = await anext(found)
        heard.set()
        second = await anext(found)
        await found.aclose()
        await asyncio.sleep(0)
        assert ended == [True]
        return first.text, second.text

    wanted = tuple(translator.translate(text).text for text in ("dalan", "mira"))
    assert asyncio.run(asyncio.wait_for(main(), 60)) == wanted


def test_failures_of_a_source_are_raised(translator):
    async def texts():
        yield "dalan"
        raise KeyError("of the source")

    async def main(source):
        return [one.text async for one in translator.translate_iter_async(source)]

    for source in (texts(), ({}[text] for text in ["a"])):
        with pytest.raises(KeyError):
            asyncio.run(main(source))
